/** RFC 9110, 7.2, without the comma: where two `Host` were made one, it stands between them. */
const nameAndPort = /^(?:\[[\w:.%~-]+\]|[\w.~!$&'()*+;=%-]*)(?::\d{0,5})?$/u;

/** Says whether a `Host` is one; those of other servers are, too, because a proxy in front may have been called by any name. */
export function isHost(value: string): boolean {
  return nameAndPort.test(value);
}
