import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect as connectSocket, createServer, type Server } from "node:net";
import path from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { StatusCode } from "../../protocol/error.ts";
import { freePort } from "../helpers/free-port.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";
import { opening } from "./opening.ts";

describe("connect", () => {
  let server: RedisServer;
  const connect = opening();
  const user = ["--user", "reader", "on", ">pa@ss", "~*", "&*", "+@all"];
  beforeAll(async () => {
    server = await startRedis({ extra: ["--requirepass", "open sesame", ...user] });
  });
  afterAll(() => server.stop());

  it("lets in with password, user and database", async () => {
    const place = `127.0.0.1:${server.port}`;
    const writer = await connect(`redis://:open%20sesame@${place}/3`, "commands");
    await writer.set("greeting", Buffer.from([0, 255]));
    const reader = await connect(`redis://reader:pa@ss@${place}/3`, "commands");
    expect(await reader.getBuffer("greeting")).toEqual(Buffer.from([0, 255]));
    expect(await reader.acl("WHOAMI")).toBe("reader");
  });

  it.each([
    ["a wrong password", "redis://:secret@", "", "WRONGPASS"],
    ["no password", "redis://", "", "NOAUTH"],
    ["a database that is not there", "redis://:open%20sesame@", "/99", "ERR DB index"],
    ["a Cluster that is none", "redis-cluster://:open%20sesame@", "", "ERR This instance has"],
    ["a wrong password of a Cluster", "redis-cluster://:secret@", "", "WRONGPASS"],
  ])("is refused with %s without waiting", async (_, start, end, reason) => {
    const place = `127.0.0.1:${server.port}`;
    const refused = connect(`${start}${place}${end}`, "commands", { timeoutMilliseconds: 60_000 });
    const text = `Redis at ${place} refuses the connection: ${reason}`;
    await expect(refused).rejects.toThrow(text);
    await expect(refused).rejects.toMatchObject({ code: StatusCode.Unavailable });
    await expect(refused).rejects.not.toThrow("secret");
  });

  it.each(["redis", "redis-cluster"])("gives up on a %s that nobody serves", async (scheme) => {
    const place = `127.0.0.1:${await freePort()}`;
    const url = `${scheme}://:secret@${place}`;
    const text = `Redis at ${place} was not reached in 200 ms: `;
    const refused = connect(url, "commands", { timeoutMilliseconds: 200 });
    await expect(refused).rejects.toThrow(text);
    await expect(refused).rejects.toMatchObject({ code: StatusCode.Unavailable });
  });

  it("gives up on a server that never answers", async () => {
    const silent = createServer((socket) => socket.on("error", () => {}));
    const port = await listen(silent);
    const refused = connect(`redis://127.0.0.1:${port}`, "blocking", { timeoutMilliseconds: 200 });
    await expect(refused).rejects.toThrow("was not reached in 200 ms");
    silent.close();
  });

  it("waits for a server that starts a little later", async () => {
    const port = await freePort();
    const connecting = connect(`redis://127.0.0.1:${port}`, "commands");
    const late = await startRedis({ port });
    const redis = await connecting;
    expect(await redis.ping()).toBe("PONG");
    await late.stop();
  });
});

describe("connect with TLS", () => {
  const certificate = path.join(import.meta.dirname, "localhost.crt");
  let server: RedisServer;
  let front: Server;
  let url: string;
  beforeAll(async () => {
    server = await startRedis();
    const cert = readFileSync(certificate);
    const key = readFileSync(path.join(import.meta.dirname, "localhost.key"));
    front = createTlsServer({ cert, key }, (socket) => {
      const behind = connectSocket(server.port, "127.0.0.1");
      behind.on("error", () => {});
      socket.on("error", () => {});
      socket.pipe(behind).pipe(socket);
    });
    url = `rediss://localhost:${await listen(front)}`;
  });
  afterAll(async () => {
    front.close();
    await server.stop();
  });

  it("trusts what the system trusts", async () => {
    expect(await pingFrom(url, 10_000, certificate)).toBe("PONG\n");
  });

  it("refuses a certificate that nobody vouches for", async () => {
    expect(await pingFrom(url, 500)).toMatch(/was not reached in 500 ms: self-signed certificate/u);
  });
});

/** What a process of its own says: trust is decided when node starts. */
async function pingFrom(
  url: string,
  timeoutMilliseconds: number,
  trusted?: string,
): Promise<string> {
  const module = path.resolve(import.meta.dirname, "../../redis/connection.ts");
  const [from, to] = [JSON.stringify(module), JSON.stringify(url)];
  const source = `
    import { connect } from ${from};
    try {
      const redis = await connect(${to}, "commands", { timeoutMilliseconds: ${timeoutMilliseconds} });
      console.log(await redis.ping());
      redis.disconnect();
    } catch (error) {
      console.log(error.message);
    }`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", source], {
    env: { ...process.env, NODE_EXTRA_CA_CERTS: trusted },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.on("data", (chunk) => (said += chunk));
  await once(child, "close");
  return said;
}

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("no port");
  return address.port;
}
