import { createServer } from "node:net";

/** The system may offer a port again as soon as it is free, which is before its program has it. */
const given = new Set<number>();

/** A port that was free a moment ago and that nobody here got before, for programs that cannot choose one themselves. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = await offeredPort();
    if (given.has(port)) continue;
    given.add(port);
    return port;
  }
}

async function offeredPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (typeof address !== "object" || address === null) throw new Error("no port");
  return address.port;
}
