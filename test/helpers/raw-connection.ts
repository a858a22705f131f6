import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** A TCP connection for clients that do not speak properly. */
export interface RawConnection {
  readonly socket: Socket;
  /** What has come so far. */
  readonly received: Buffer;
  /** Resolves with all that came, when the server has ended the connection. */
  readonly ended: Promise<Buffer>;
}

/** @param address as in `127.0.0.1:8000` */
export async function rawConnection(
  address: string,
  first: Buffer | string = "",
): Promise<RawConnection> {
  const [host, port] = address.split(":");
  const socket = connect(Number(port), host);
  let received: Buffer = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
  });
  // A server may answer early and let go: what came until then counts.
  socket.on("error", () => {});
  const { promise: ended, resolve } = Promise.withResolvers<Buffer>();
  socket.on("close", () => resolve(received));
  await once(socket, "connect");
  socket.write(first);
  return {
    socket,
    get received() {
      return received;
    },
    ended,
  };
}

/** The status of the answer to one request on a connection of its own, which is then ended; NaN where there is no answer. */
export async function rawStatus(address: string, request: Buffer | string): Promise<number> {
  const connection = await rawConnection(address, request);
  const { promise: answered, resolve } = Promise.withResolvers<void>();
  const look = (): void => {
    if (statusIn(connection.received) !== undefined) resolve();
  };
  connection.socket.on("data", look);
  look();
  await Promise.race([answered, connection.ended]);
  connection.socket.destroy();
  return Number(statusIn(connection.received));
}

/** That of an answer, not of what only asks to go on. */
function statusIn(received: Buffer): string | undefined {
  return /^HTTP\/1\.1 (?<status>[2-5]\d\d)/mu.exec(String(received))?.groups?.["status"];
}
