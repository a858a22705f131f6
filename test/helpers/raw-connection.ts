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
