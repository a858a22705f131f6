import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { newApiKey } from "../../../auth/api-key.ts";
import { edgeKeyName } from "../../../protocol/edge-key.ts";
import { type EdgeWorker, startEdge } from "../../helpers/edge-worker.ts";
import { freePort } from "../../helpers/free-port.ts";
import { type Answer, errorOf, HttpClient } from "../../helpers/http-client.ts";

const limit = 20;

let edge: EdgeWorker;
let http: HttpClient;
beforeAll(async () => {
  // Who is let in gets 503: there is no gateway.
  const variables = { ORIGINS: `http://127.0.0.1:${await freePort()}`, RATE_LIMIT_REQUESTS: limit };
  edge = await startEdge(variables, limit);
  http = new HttpClient(edge.address);
}, 90_000);
afterAll(async () => {
  http.close();
  await edge.stop();
});

function ask(address: string, key: string): Promise<Answer> {
  const headers = { "X-API-Key": key, "CF-Connecting-IP": address };
  return http.ask("GET", "/v2/models/a/ready", undefined, headers);
}

async function statusOf(address: string, key: string): Promise<number> {
  return (await ask(address, key)).status;
}

/** A key that the namespace knows, and nobody has shown yet. */
async function goodKey(): Promise<string> {
  const { id, text } = newApiKey();
  const record = { tenant: "a", scopes: ["read"], models: ["*"], sha256: hash("sha256", text) };
  await edge.keys.put(edgeKeyName(id), JSON.stringify(record));
  return text;
}

/** Shows keys that are none until they are not looked up any more. @returns how many were */
async function guess(address: string): Promise<number> {
  // A window may end amid it, two cannot.
  for (let i = 0; i <= 2 * limit; i++) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other, to count them
    if ((await statusOf(address, newApiKey().text)) === 429) return i;
  }
  throw new Error("all were looked up");
}

describe("the edge Worker, with keys that somebody makes up", () => {
  it("looks up no more of one address than the limit, good ones neither, and says when to come again", async () => {
    const looked = await guess("192.0.2.1");
    expect(looked).toBeGreaterThanOrEqual(limit);
    const key = await goodKey();
    const refused = await ask("192.0.2.1", key);
    expect(refused.status).toBe(429);
    expect(refused.headers["retry-after"]).toBe("60");
    expect(errorOf(refused)).toBe(
      "rate limit: given more than 20 unknown API keys from one address in 60 seconds",
    );
    expect(await statusOf("192.0.2.2", key)).toBe(503);
  });

  it("takes a network of IPv6 for one address", async () => {
    await guess("2001:db8::1");
    expect(await statusOf("2001:db8::2:3:4:5", newApiKey().text)).toBe(429);
    expect(await statusOf("2001:db8:0:1::1", newApiKey().text)).toBe(401);
  });

  it("goes on looking up a key that it has let in, whoever guesses at its address", async () => {
    const key = await goodKey();
    expect(await statusOf("192.0.2.3", key)).toBe(503);
    await guess("192.0.2.3");
    expect(await statusOf("192.0.2.3", key)).toBe(503);
    await edge.keys.delete(edgeKeyName(key.slice(3, 15)));
    let status = 503;
    for (let i = 0; i < 15 && status === 503; i++) {
      // oxlint-disable-next-line no-await-in-loop -- it is remembered for five seconds, and has a limit of its own
      await sleep(800);
      // oxlint-disable-next-line no-await-in-loop
      status = await statusOf("192.0.2.3", key);
    }
    expect(status).toBe(401);
    await guess("192.0.2.3");
    expect(await statusOf("192.0.2.3", key)).toBe(429);
  }, 30_000);

  it("neither looks up nor counts what cannot be a key", async () => {
    const { text } = newApiKey();
    const wrong = [text.slice(1), text.slice(0, -1), `${text}A`, text.toUpperCase(), "tp_", "a"];
    for (let i = 0; i < 3 * limit; i++) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect(await statusOf("192.0.2.4", wrong[i % wrong.length] ?? "")).toBe(401);
    }
    expect(await statusOf("192.0.2.4", text)).toBe(401);
  });
});
