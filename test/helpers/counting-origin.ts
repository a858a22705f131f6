import { createServer, type IncomingHttpHeaders, request as httpRequest } from "node:http";
import { pipeline } from "node:stream";

/** A call as it came to an origin. */
export interface OriginCall {
  readonly method: string;
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
}

/** Stands in front of a gateway and sees what reaches it. */
export interface CountingOrigin {
  /** As in `http://127.0.0.1:8000`. */
  readonly url: string;
  readonly calls: OriginCall[];
  /** While it is set, no call gets through, and this is the answer. */
  failure: number | undefined;
  /** What the gateway's answers get besides their own headers. */
  more: Readonly<Record<string, string>>;
  close(): void;
}

/** @param address of the gateway, as in `127.0.0.1:8000` */
export async function startCountingOrigin(address: string): Promise<CountingOrigin> {
  const [hostname, port] = address.split(":");
  const server = createServer((incoming, outgoing) => {
    const { method = "", url: target = "", headers } = incoming;
    origin.calls.push({ method, target, headers });
    if (origin.failure !== undefined) {
      outgoing.writeHead(origin.failure).end();
      return;
    }
    const onwards = httpRequest({ hostname, port, method, path: target, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 0, { ...answer.headers, ...origin.more });
      pipeline(answer, outgoing, () => {});
    });
    onwards.on("error", () => outgoing.destroy());
    pipeline(incoming, onwards, () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const own = server.address();
  const origin: CountingOrigin = {
    url: `http://127.0.0.1:${typeof own === "object" ? own?.port : ""}`,
    calls: [],
    failure: undefined,
    more: {},
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
  return origin;
}
