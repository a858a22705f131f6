import { afterEach } from "vitest";
import { type EchoOptions, EchoServer } from "./echo-server.ts";
import { RawClient } from "./raw-client.ts";

/**
 * Gives a `connect` that starts a server and a client of it, which end with the test.
 *
 * @param use is given both
 */
export function connecting(
  use: (server: EchoServer, client: RawClient) => void,
): (options?: EchoOptions) => Promise<void> {
  const ends: (() => Promise<void> | void)[] = [];
  afterEach(async () => {
    // oxlint-disable-next-line no-await-in-loop -- the client goes first
    for (const end of ends.splice(0).toReversed()) await end();
  });
  return async (options) => {
    const server = await EchoServer.start(options);
    ends.push(() => server.stop());
    const client = await RawClient.connect(server.port);
    ends.push(() => void client.socket.destroy());
    use(server, client);
  };
}
