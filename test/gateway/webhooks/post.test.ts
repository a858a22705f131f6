import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import path from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { parseAllowedTarget } from "../../../gateway/webhooks/allowed-target.ts";
import { post, type PostAnswer, type PostOptions } from "../../../gateway/webhooks/post.ts";
import {
  type ReceiverOptions,
  startReceiver,
  tlsFixtures,
  type WebhookReceiver,
} from "../../helpers/webhook-receiver.ts";

const receivers: WebhookReceiver[] = [];
afterEach(async () => {
  await Promise.all(receivers.splice(0).map((one) => one.close()));
});

async function receiver(options: ReceiverOptions = {}): Promise<WebhookReceiver> {
  const one = await startReceiver(options);
  receivers.push(one);
  return one;
}

/** How the names of a test are resolved, and how often that was asked. */
function resolver(...answers: readonly (readonly string[])[]) {
  const asked: string[] = [];
  const resolve = async (name: string) => {
    const addresses = answers[Math.min(asked.push(name), answers.length) - 1] ?? [];
    return addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  };
  return { asked, resolve };
}

interface Sending extends Pick<PostOptions, "resolve"> {
  readonly allow?: readonly string[];
  readonly milliseconds?: number;
}

function send(url: string, { allow = [], milliseconds = 5000, ...more }: Sending = {}) {
  const ports = receivers.map(({ port }) => port);
  const allowed = allow.flatMap((text) => parseAllowedTarget(text) ?? []);
  const policy = { allowHttp: true, ports: [...ports, 80, 443], allowed };
  const message = { url, headers: { "webhook-id": "one" }, body: '{"a":1}' };
  const signal = AbortSignal.timeout(milliseconds);
  return post(message, { policy, signal, ...more });
}

function toLoopback(url: string, more: Sending = {}): Promise<PostAnswer> {
  return send(url, { allow: ["127.0.0.1"], ...more });
}

function redirecting(times: number): Promise<WebhookReceiver> {
  return receiver({
    answer: (outgoing, received) =>
      received > times
        ? outgoing.writeHead(200).end()
        : outgoing.writeHead(307, { Location: "/again" }).end(),
  });
}

describe("post", () => {
  it("posts the message and gives the status, without the answer's body", async () => {
    const one = await receiver({
      answer: (outgoing) => outgoing.writeHead(503, { "Retry-After": "7" }).end("secret"),
    });
    const answer = await toLoopback(`${one.origin}/hook?x=1`);
    expect(answer).toEqual({ status: 503, retryAfter: "7" });
    expect(one.received).toMatchObject([
      {
        method: "POST",
        path: "/hook?x=1",
        body: '{"a":1}',
        headers: { "webhook-id": "one", "content-length": "7", host: `127.0.0.1:${one.port}` },
      },
    ]);
  });

  it.each(["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "0.0.0.0"])(
    "connects to nobody when the name stands for %s",
    async (address) => {
      const one = await receiver();
      const { resolve } = resolver([address]);
      const sent = send(`http://hooks.example:${one.port}/`, { resolve });
      await expect(sent).rejects.toThrow("may not go to the address of that name");
      expect(one.connections).toBe(0);
    },
  );

  it.each(["localhost", "localhost.", "LOCALHOST"])(
    "is not led here by the name %s",
    async (name) => {
      const one = await receiver();
      const sent = send(`http://${name}:${one.port}/`);
      await expect(sent).rejects.toThrow(/may not go to the address|ENOTFOUND/u);
      expect(one.connections).toBe(0);
    },
  );

  it("connects to the address that was looked at, whatever the name stands for later", async () => {
    const wanted = await receiver({ address: "127.0.0.2" });
    const other = await receiver({ port: wanted.port });
    const { asked, resolve } = resolver(["127.0.0.2"], ["127.0.0.1"]);
    const allow = ["127.0.0.2"];
    const url = `http://hooks.example:${wanted.port}/`;
    expect(await send(url, { allow, resolve })).toMatchObject({ status: 204 });
    expect(asked).toEqual(["hooks.example"]);
    await expect(send(url, { allow, resolve })).rejects.toThrow("may not go to the address");
    expect([wanted.connections, other.connections]).toEqual([1, 0]);
  });

  it("leaves out the addresses of a name that it may not go to", async () => {
    const wanted = await receiver({ address: "127.0.0.2" });
    const other = await receiver({ port: wanted.port });
    const { resolve } = resolver(["127.0.0.1", "::1", "127.0.0.2"]);
    const url = `http://hooks.example:${wanted.port}/`;
    await send(url, { allow: ["127.0.0.2"], resolve });
    expect([wanted.connections, other.connections]).toEqual([1, 0]);
  });

  it.each([307, 308])("repeats the same where it is redirected with %s", async (status) => {
    const last = await receiver();
    const first = await receiver({
      answer: (outgoing) => outgoing.writeHead(status, { Location: `${last.origin}/b` }).end(),
    });
    expect(await toLoopback(first.origin)).toMatchObject({ status: 204 });
    expect(last.received).toMatchObject([
      { method: "POST", path: "/b", body: '{"a":1}', headers: { "webhook-id": "one" } },
    ]);
  });

  it.each([301, 302, 303])(
    "does not follow %s, with which nothing would be sent",
    async (status) => {
      const last = await receiver();
      const first = await receiver({
        answer: (outgoing) => outgoing.writeHead(status, { Location: last.origin }).end(),
      });
      expect(await toLoopback(first.origin)).toMatchObject({ status });
      expect(last.connections).toBe(0);
    },
  );

  it("does not follow a redirect to where it may not go", async () => {
    const inside = await receiver({ address: "127.0.0.2" });
    const locations = [
      inside.origin,
      `http://2130706434:${inside.port}/`,
      `//127.0.0.2:${inside.port}/`,
      `http://user:word@127.0.0.1:${inside.port}/`,
      "http://127.0.0.1:1/",
      "file:///etc/passwd",
      "http://",
    ];
    for (const location of locations) {
      const first = await receiver({
        answer: (outgoing) => outgoing.writeHead(307, { Location: location }).end(),
      });
      await expect(toLoopback(first.origin)).rejects.toThrow("webhooks may not go to that URL");
    }
    expect(inside.connections).toBe(0);
  });

  it("asks anew what the name in a redirect stands for", async () => {
    const inside = await receiver({ address: "127.0.0.2" });
    const first = await receiver({
      answer: (outgoing) =>
        outgoing.writeHead(307, { Location: `http://inside.example:${inside.port}/` }).end(),
    });
    const { asked, resolve } = resolver(["127.0.0.1"], ["127.0.0.2"]);
    const sent = toLoopback(`http://hooks.example:${first.port}/`, { resolve });
    await expect(sent).rejects.toThrow("may not go to the address");
    expect(asked).toEqual(["hooks.example", "inside.example"]);
    expect(inside.connections).toBe(0);
  });

  it("follows three redirects and no more", async () => {
    expect(await toLoopback((await redirecting(3)).origin)).toMatchObject({ status: 200 });
    await expect(toLoopback((await redirecting(4)).origin)).rejects.toThrow("too many redirects");
  });

  it("ends when its time is over, whatever the receiver does", async () => {
    const silent = await receiver({ answer: () => {} });
    await expect(toLoopback(silent.origin, { milliseconds: 50 })).rejects.toThrow("aborted");
    const never = { resolve: () => new Promise<never>(() => {}), milliseconds: 50 };
    await expect(send("https://hooks.example/", never)).rejects.toThrow("aborted");
  });

  it("is content with the head of an answer that never ends", async () => {
    const endless = await receiver({
      answer: (outgoing) => {
        outgoing.writeHead(200);
        const more = (): boolean => outgoing.destroyed || !outgoing.write("x".repeat(1024));
        outgoing.on("drain", more);
        while (!more());
      },
    });
    // More than the test may take.
    const patient = { milliseconds: 60_000 };
    expect(await toLoopback(endless.origin, patient)).toMatchObject({ status: 200 });
    const trickle = await receiver({ answer: (outgoing) => outgoing.writeHead(202).write("x") });
    expect(await toLoopback(trickle.origin, { milliseconds: 200 })).toMatchObject({ status: 202 });
  });

  it.each([
    "",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    "?",
  ])("fails when the receiver closes or talks nonsense: %j", async (text) => {
    const server = createServer((socket: Socket) => socket.on("error", () => {}).end(text));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" ? (address?.port ?? 0) : 0;
    const policy = { allowHttp: true, ports: [port], allowed: [] };
    const allowed = [parseAllowedTarget("127.0.0.1")].flatMap((one) => one ?? []);
    const message = { url: `http://127.0.0.1:${port}/`, headers: {}, body: "{}" };
    const signal = AbortSignal.timeout(5000);
    await expect(
      post(message, { policy: { ...policy, allowed }, signal }),
    ).rejects.not.toMatchObject({ name: "AbortError" });
    server.close();
  });
});

describe("post with TLS", () => {
  const before = getCACertificates("default");
  const ca = readFileSync(path.join(tlsFixtures, "ca.pem"), "utf8");
  const { resolve } = resolver(["127.0.0.1"]);
  beforeAll(() => setDefaultCACertificates([...before, ca]));
  afterAll(() => setDefaultCACertificates(before));

  it("knows the receiver by the name in its certificate", async () => {
    const one = await receiver({ tls: true });
    const named = toLoopback(`https://localhost:${one.port}/`, { resolve });
    expect(await named).toMatchObject({ status: 204 });
    const other = toLoopback(`https://hooks.example:${one.port}/`, { resolve });
    await expect(other).rejects.toMatchObject({ code: "ERR_TLS_CERT_ALTNAME_INVALID" });
    expect(one.received).toHaveLength(1);
  });

  it("sends nothing to a receiver whose certificate nobody vouches for", async () => {
    setDefaultCACertificates(before);
    const one = await receiver({ tls: true });
    const sent = toLoopback(`https://localhost:${one.port}/`, { resolve });
    await expect(sent).rejects.toMatchObject({ code: expect.stringMatching(/CERT|SIGN/u) });
    expect(one.received).toEqual([]);
    setDefaultCACertificates([...before, ca]);
  });

  it("is not redirected to where there is no TLS", async () => {
    const plain = await receiver();
    const one = await receiver({
      tls: true,
      answer: (outgoing) => outgoing.writeHead(307, { Location: plain.origin }).end(),
    });
    const sent = toLoopback(`https://localhost:${one.port}/`, { resolve });
    await expect(sent).rejects.toThrow("redirected from https to http");
    expect(plain.connections).toBe(0);
  });
});
