import { readFileSync } from "node:fs";
import type { Socket } from "node:net";

/** What the kernel calls it in its table. */
const establishedState = "01";

/** True while the server's end of a connection on this machine is open: asked of the kernel, so that nothing is read or sent. */
export function isOpenAtServer({ localPort = 0, remotePort = 0 }: Socket): boolean {
  const ends = `${endOf(remotePort)} ${endOf(localPort)} ${establishedState} `;
  return readFileSync("/proc/net/tcp", "utf8").includes(ends);
}

function endOf(port: number): string {
  return `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
}
