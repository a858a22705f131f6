import { once } from "node:events";
import {
  createServer,
  get,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type CountingOrigin, startCountingOrigin } from "../../helpers/counting-origin.ts";
import { startEdge, type EdgeWorker } from "../../helpers/edge-worker.ts";
import { freePort } from "../../helpers/free-port.ts";
import { type Answer, HttpClient } from "../../helpers/http-client.ts";
import { rowOf } from "../../helpers/times-model.ts";
import { type EdgeStand, startEdgeStand } from "./edge-stand.ts";

const bufferedBytes = 16_384;
const gatewayTakes = 40_000;

let stand: EdgeStand;
let key: string;
beforeAll(async () => {
  stand = await startEdgeStand({ BUFFERED_BYTES: bufferedBytes }, [
    `--http-max-input-size=${gatewayTakes}`,
  ]);
  key = await stand.key();
}, 90_000);
afterAll(() => stand.stop());

function infer(http: HttpClient, body: object | Buffer, headers = {}): Promise<Answer> {
  return http.infer("plain", body, { "X-API-Key": key, ...headers });
}

/** A body that is larger than the edge reads. */
const large = JSON.stringify({ ...rowOf(1, 2), id: "a".repeat(20_000) });

describe("the edge Worker, with a body", () => {
  it("signs one that is small, and streams one that is large or of unknown length", async () => {
    const words: unknown[] = [];
    for (const [body, more] of [
      [JSON.stringify(rowOf(1, 2)), {}],
      [large, {}],
      [JSON.stringify(rowOf(1, 2)), { "Transfer-Encoding": "chunked" }],
    ] as const) {
      expect((await infer(stand.http, Buffer.from(body), more)).status).toBe(200);
      words.push(JSON.parse(wordOf(stand.origin).text).bodySha256);
    }
    const digest = expect.stringMatching(/^[0-9a-f]{64}$/u);
    expect(words).toEqual([digest, null, null]);
  });

  it("hands one over that is larger than a gateway takes, which says so", async () => {
    // Of a body that nobody reads workerd takes 64 KiB more, and ends the connection at the next byte.
    const answer = await infer(stand.http, Buffer.alloc(gatewayTakes + 1));
    expect(answer.status).toBe(400);
    expect(answer.text).toContain("--http-max-input-size");
  });
});

describe("the edge Worker, with Server-Timing", () => {
  it("adds its own to that of the origin", async () => {
    stand.origin.more = { "Server-Timing": "load;dur=12.5, first_infer;dur=3.0" };
    const { headers } = await infer(stand.http, rowOf(1, 2));
    stand.origin.more = {};
    expect(headers["server-timing"]).toMatch(
      /^load;dur=12\.5, first_infer;dur=3\.0, edge;dur=\d+$/u,
    );
  });
});

describe("an edge Worker's word", () => {
  it("is taken once", async () => {
    expect((await infer(stand.http, rowOf(1, 2))).status).toBe(200);
    const { header } = wordOf(stand.origin);
    const replayed = await stand.gateway.infer("plain", rowOf(1, 2), { "tidepool-edge": header });
    expect(replayed.status).toBe(401);
    expect(replayed.text).toContain("it was used before");
  });

  it("is taken for nothing else, and from nobody else", async () => {
    stand.origin.failure = 418;
    await infer(stand.http, rowOf(1, 2));
    stand.origin.failure = undefined;
    // Signed and never used: good for the very call, which comes last.
    const { header, text } = wordOf(stand.origin);
    const word = { "tidepool-edge": header };
    const { gateway } = stand;
    const path = "/v2/models/plain/infer";
    const forged = JSON.parse(text);
    const other = JSON.stringify({
      ...forged,
      caller: { kind: "token", claims: { sub: "a", scope: "admin" } },
    });
    const tries = [
      gateway.ask("PUT", path, JSON.stringify(rowOf(1, 2)), word),
      gateway.ask("GET", "/v2", undefined, word),
      gateway.infer("cached", rowOf(1, 2), word),
      gateway.post(`${path}?a=1`, rowOf(1, 2), word),
      gateway.infer("plain", rowOf(1, 2), { ...word, Prefer: "respond-async" }),
      gateway.infer("plain", rowOf(1, 2), { ...word, "Content-Encoding": "gzip" }),
      gateway.infer("plain", rowOf(1, 2), { "tidepool-edge": header.replace(text, other) }),
      gateway.infer("plain", rowOf(1, 2), { "tidepool-edge": `${"0".repeat(64)} ${text}` }),
      gateway.infer("plain", rowOf(1, 2), { "tidepool-edge": text }),
      gateway.infer("plain", rowOf(1, 2), { "tidepool-edge": "" }),
    ];
    for (const one of tries) expect((await one).status).toBe(401);
    const changed = await gateway.infer("plain", rowOf(1, 3), word);
    expect([changed.status, changed.text]).toEqual([
      401,
      expect.stringContaining("its body is not the one that was signed"),
    ]);
  });

  it("from a client is dropped, and so is where that says it is", async () => {
    const forged = { "tidepool-edge": "a b", "X-Forwarded-For": "192.0.2.1" };
    expect((await infer(stand.http, rowOf(1, 2), forged)).status).toBe(200);
    expect(stand.origin.calls.at(-1)?.headers["x-forwarded-for"]).not.toBe("192.0.2.1");
  });
});

describe("the edge Worker, with two origins", () => {
  let edge: EdgeWorker;
  let http: HttpClient;
  let first: CountingOrigin;
  beforeAll(async () => {
    first = await startCountingOrigin(stand.origin.url.slice("http://".length));
  });
  afterAll(() => first.close());

  async function withOrigins(origins: readonly string[], use: () => Promise<void>): Promise<void> {
    edge = await startEdge({ ORIGINS: origins.join(","), BUFFERED_BYTES: bufferedBytes });
    http = new HttpClient(edge.address);
    const { keys } = await stand.edge.keys.list();
    for (const { name } of keys)
      await edge.keys.put(name, (await stand.edge.keys.get(name, "text")) ?? "");
    try {
      await use();
    } finally {
      http.close();
      await edge.stop();
    }
  }

  it("asks the second one while the first cannot be reached", async () => {
    const dead = `http://127.0.0.1:${await freePort()}`;
    await withOrigins([dead, stand.origin.url], async () => {
      for (let i = 0; i < 5; i++) expect((await infer(http, rowOf(1, 2))).status).toBe(200);
      // The one that failed is not asked first for a while, so that even this one arrives.
      expect((await infer(http, Buffer.from(large))).status).toBe(200);
    });
  }, 60_000);

  it("asks the second one when the first is unavailable, or only what stands before it", async () => {
    await withOrigins([first.url, stand.origin.url], async () => {
      for (const failure of [503, 502]) {
        first.failure = failure;
        expect((await infer(http, rowOf(1, 2))).status).toBe(200);
      }
      first.failure = 500;
    });
    await withOrigins([first.url, stand.origin.url], async () => {
      expect((await infer(http, rowOf(1, 2))).status).toBe(500);
    });
  }, 60_000);

  it("gives the failure on where the call may not be run twice, or its body has gone by", async () => {
    await withOrigins([first.url, stand.origin.url], async () => {
      first.failure = 503;
      const second = stand.origin.calls.length;
      expect((await infer(http, Buffer.from(large))).status).toBe(503);
      const job = { Prefer: "respond-async" };
      expect((await infer(http, rowOf(1, 2), job)).status).toBe(503);
      const load = await http.post("/v2/repository/models/plain/load", "{}", { "X-API-Key": key });
      expect(load.status).toBe(503);
      expect(stand.origin.calls.length).toBe(second);
    });
  }, 60_000);

  it("says 503 when none can be reached", async () => {
    const dead = await Promise.all([freePort(), freePort()]);
    await withOrigins(
      dead.map((port) => `http://127.0.0.1:${port}`),
      async () => {
        const answer = await infer(http, rowOf(1, 2));
        expect([answer.status, answer.headers["retry-after"]]).toEqual([503, "1"]);
      },
    );
  }, 60_000);
});

describe("the edge Worker, with a slow origin", () => {
  let origin: Server;
  let edge: EdgeWorker;
  let asked: Promise<ServerResponse>;
  beforeEach(async () => {
    const { promise, resolve } = Promise.withResolvers<ServerResponse>();
    asked = promise;
    origin = createServer((_, response) => resolve(response));
    origin.listen(0, "127.0.0.1");
    await once(origin, "listening");
    const own = origin.address();
    const port = typeof own === "object" ? own?.port : "";
    edge = await startEdge({ ORIGINS: `http://127.0.0.1:${port}` });
  }, 30_000);
  afterEach(async () => {
    await edge.stop();
    origin.close();
  });

  it("tells it that the client has hung up", async () => {
    const request = get(`http://${edge.address}/v2/health/live`);
    request.on("error", () => {});
    const response = await asked;
    const closed = once(response, "close");
    // One that only ends its side may still want the answer.
    request.socket?.resetAndDestroy();
    await closed;
    expect(response.writableFinished).toBe(false);
  });

  it("gives each piece of an answer on as it comes", async () => {
    const request = get(`http://${edge.address}/v2/health/live`);
    const response = await asked;
    response.write("first");
    const [answer]: IncomingMessage[] = await once(request, "response");
    const pieces: string[] = [];
    for await (const piece of answer ?? []) {
      pieces.push(String(piece));
      response.end("last");
    }
    expect(pieces).toEqual(["first", "last"]);
  });
});

describe("the edge Worker, with too many calls", () => {
  it("refuses a caller, not others, and says when to come again", async () => {
    const other = await stand.key();
    const ask = (one: string): Promise<Answer> =>
      stand.http.ask("GET", "/v2", undefined, { "X-API-Key": one });
    let refused: Answer | undefined;
    // A window may end amid it, two cannot.
    for (let i = 0; i < 60 && !refused; i++) {
      const answers = await Promise.all(Array.from({ length: 50 }, () => ask(key)));
      refused = answers.find(({ status }) => status === 429);
    }
    expect(refused?.headers).toMatchObject({
      "retry-after": "60",
      ratelimit: '"edge";r=0;t=60',
      "ratelimit-policy": '"edge";q=1000;w=60',
    });
    expect(refused?.text).toContain("given more than 1000 requests in 60 seconds");
    expect((await ask(other)).status).toBe(200);
  }, 60_000);
});

/** The word of the last call that reached the origin. */
function wordOf(origin: CountingOrigin): { readonly header: string; readonly text: string } {
  const header = String(
    origin.calls.findLast(({ target }) => !target.endsWith("/config"))?.headers["tidepool-edge"],
  );
  return { header, text: header.slice(65) };
}
