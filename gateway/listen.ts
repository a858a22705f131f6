import type { Server } from "node:net";

/** Where a server listens. */
export interface ListenAddress {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** Several processes or threads may listen on the port and share its connections. */
  readonly reusePort?: boolean;
}

/** Makes a server listen and resolves with its port; rejects with the system's error when the address cannot be had. */
export function listen(
  server: Server,
  { host, port, reusePort = false }: ListenAddress,
): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.once("error", reject);
  server.listen({ host, port, reusePort }, () => {
    server.off("error", reject);
    const bound = server.address();
    resolve(typeof bound === "object" && bound ? bound.port : port);
  });
  return promise;
}
