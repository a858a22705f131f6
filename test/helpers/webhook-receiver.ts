import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import path from "node:path";
import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";

/** A request as a receiver of webhooks got it. */
export interface ReceivedWebhook {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A real receiver of webhooks. */
export interface WebhookReceiver {
  readonly port: number;
  /** As in `http://127.0.0.1:9000`. */
  readonly origin: string;
  /** Whole requests, the first one first. */
  readonly received: readonly ReceivedWebhook[];
  /** Connections so far, also those on which nothing came. */
  readonly connections: number;
  close(): Promise<void>;
}

/** Answers a request; without it the answer is 204. @param received how many there have been, with this one */
export type Answering = (outgoing: ServerResponse, received: number) => void;

export interface ReceiverOptions {
  readonly answer?: Answering;
  readonly tls?: boolean;
  /** @defaultValue 127.0.0.1 */
  readonly address?: string;
  readonly port?: number;
}

export const tlsFixtures = path.join(import.meta.dirname, "../fixtures/tls");

/** Starts a receiver on a port of its own. */
export async function startReceiver(options: ReceiverOptions = {}): Promise<WebhookReceiver> {
  const { answer = (outgoing) => outgoing.writeHead(204).end(), address = "127.0.0.1" } = options;
  const received: ReceivedWebhook[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const listener = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    received.push({
      method: incoming.method ?? "",
      path: incoming.url ?? "",
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- webhooks have each header once
      headers: incoming.headers as Record<string, string>,
      body: String(Buffer.concat(chunks)),
    });
    answer(outgoing, received.length);
  };
  const keys = options.tls && { cert: pem("server.pem"), key: pem("server-key.pem") };
  const heard = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    listener(incoming, outgoing).catch(() => outgoing.destroy());
  };
  const server = keys ? createTlsServer(keys, heard) : createServer(heard);
  server.on("connection", (socket: Socket) => {
    connections++;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.listen(options.port ?? 0, address);
  await once(server, "listening");
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on a port
  const { port } = server.address() as AddressInfo;
  return {
    port,
    origin: `${options.tls ? "https" : "http"}://${address}:${port}`,
    received,
    get connections() {
      return connections;
    },
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}

function pem(name: string): Buffer {
  return readFileSync(path.join(tlsFixtures, name));
}
