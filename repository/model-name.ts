import { invalidArgument } from "../protocol/error.ts";

const maxNameBytes = 255;
// Control characters, the separators of either kind of system, and a leading dot: nothing that could leave a folder.
// oxlint-disable-next-line no-control-regex -- control characters are what it refuses
const forbidden = /^\.|[/\\\u0000-\u001f\u007f]/;

/** True for a name that may become one segment of a path, or of an object's key. */
export function isPathSegment(text: string): boolean {
  return text !== "" && !forbidden.test(text) && Buffer.byteLength(text) <= maxNameBytes;
}

/** Throws INVALID_ARG for a name from the wire that must not become a path. */
export function checkModelName(name: string): void {
  if (isPathSegment(name)) return;
  const shown = JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}…` : name);
  throw invalidArgument(
    `model name: given ${shown}, expected 1 to ${maxNameBytes} bytes without '/', '\\', control characters or a leading '.'`,
  );
}
