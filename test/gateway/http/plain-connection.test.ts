import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listen } from "../../../gateway/listen.ts";
import { PlainConnection } from "../../../gateway/http/plain-connection.ts";
import { replyBody } from "../../../gateway/http/reply-body.ts";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import { eventually } from "../../helpers/eventually.ts";
import { echo } from "../../helpers/memory-engine.ts";
import { type RawConnection, rawConnection } from "../../helpers/raw-connection.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { HttpStand } from "./http-stand.ts";

const json = '{"inputs":[{"name":"IN0","shape":[2],"datatype":"INT32","data":[1,2]}]}';
const config = {
  input: [modelInput("IN0", "TYPE_INT32", [-1])],
  output: [modelOutput("OUT0", "TYPE_INT32", [-1])],
};

let stand: HttpStand;
/** Its calls are all looked at by node: a header might be one that is to be passed on. */
let nodeStand: HttpStand;

beforeAll(async () => {
  stand = await HttpStand.start();
  nodeStand = await HttpStand.start({ headerForwardPattern: /^never$/u });
});
afterAll(async () => {
  await stand.stop();
  await nodeStand.stop();
});

/** One request as bytes. */
function post(model: string, body = json, more = ""): string {
  return (
    `POST /v2/models/${model}/infer HTTP/1.1\r\nHost: x\r\n${more}` +
    `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}

const get = "GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n";

function connectTo(to: HttpStand, first = ""): Promise<RawConnection> {
  return rawConnection(to.origin.slice(7), first);
}

/** The answers that have come, each without its date. */
function answers({ received }: RawConnection): string[] {
  return String(received)
    .split(/(?=HTTP\/1\.1 \d{3} )/u)
    .filter((answer) => isWhole(answer))
    .map((answer) => answer.replace(/Date: [^\r]+/u, "Date: now"));
}

function isWhole(answer: string): boolean {
  const [head = "", body] = answer.split("\r\n\r\n");
  const length = Number(/content-length: (?<length>\d+)/iu.exec(head)?.[1] ?? 0);
  return body !== undefined && Buffer.byteLength(body) >= length;
}

async function answersOf(connection: RawConnection, count: number): Promise<string[]> {
  await eventually(() => expect(answers(connection)).toHaveLength(count));
  return answers(connection);
}

/** Header lines in any order, and everything else as it is. */
function comparable(answer = ""): unknown {
  const [head = "", body] = answer.split("\r\n\r\n");
  const [line, ...headers] = head.split("\r\n");
  return { line, headers: headers.toSorted(), body };
}

describe("PlainConnection", () => {
  const requests = {
    JSON: post("id_int32"),
    "a model that is not there": post("nowhere"),
    "a body that is no JSON": post("id_int32", "{"),
    "a wrong shape": post("id_int32", json.replace("[2]", "[3]")),
    "a decoupled model": post("decoupled"),
    "a raw body": post("id_int32", "abcdefgh", "Inference-Header-Content-Length: 0\r\n"),
    "a wrong length of the JSON": post(
      "id_int32",
      json,
      "Inference-Header-Content-Length: 9999\r\n",
    ),
    "a version that is not there": post("id_int32/versions/7"),
    "an empty body": post("id_int32", ""),
  };
  it.for(Object.entries(requests))("answers %s as node's way does", async ([, request]) => {
    const ours = await connectTo(stand, request);
    const nodes = await connectTo(nodeStand, request);
    const [answer] = await answersOf(ours, 1);
    const [expected] = await answersOf(nodes, 1);
    expect(comparable(answer)).toEqual(comparable(expected));
    for (const { socket } of [ours, nodes]) socket.destroy();
  });

  it("answers one request after the other", async () => {
    const connection = await connectTo(stand);
    for (let i = 1; i <= 5; i++) {
      connection.socket.write(post("id_int32", json.replace("1,2", `${i},0`)));
      expect((await answersOf(connection, i)).at(-1)).toContain(`"data":[${i},0]`);
    }
    connection.socket.destroy();
  });

  it("answers a request however its bytes are cut", async () => {
    const bytes = post("id_int32", json, "Via: a-proxy\r\n");
    for (let cut = 1; cut < bytes.length; cut += 13) {
      const connection = await connectTo(stand, bytes.slice(0, cut));
      await sleep(1);
      connection.socket.write(bytes.slice(cut));
      expect((await answersOf(connection, 1))[0]).toContain('"data":[1,2]');
      connection.socket.destroy();
    }
  });

  it("answers in their order requests that do not wait for each other", async () => {
    const texts = ["1,1", "2,2", "3,3"].map((data) => post("id_int32", json.replace("1,2", data)));
    const connection = await connectTo(stand, texts.join(""));
    const together = await answersOf(connection, 3);
    expect(together.map((answer) => /"data":\[(?<data>[\d,]+)/u.exec(answer)?.[1])).toEqual([
      "1,1",
      "2,2",
      "3,3",
    ]);
    connection.socket.destroy();
  });

  it("keeps what comes while a request runs until that is answered", async () => {
    const gate = Promise.withResolvers<void>();
    stand.engine.add(servedModel("held", config), async function* (request) {
      await gate.promise;
      yield echo(request);
    });
    const connection = await connectTo(stand, post("held"));
    await sleep(20);
    connection.socket.write(get);
    await sleep(20);
    connection.socket.write(post("id_int32"));
    gate.resolve();
    const [held, live, last] = await answersOf(connection, 3);
    expect(held).toContain('"model_name":"held"');
    expect(live).toMatch(/^HTTP\/1.1 200 OK/u);
    expect(last).toContain('"model_name":"id_int32"');
    connection.socket.destroy();
  });

  it("answers any other request on a connection on which infer calls came before", async () => {
    const connection = await connectTo(stand, post("id_int32"));
    await answersOf(connection, 1);
    connection.socket.write(get);
    await answersOf(connection, 2);
    connection.socket.write(post("id_int32"));
    expect((await answersOf(connection, 3)).at(-1)).toContain('"data":[1,2]');
    connection.socket.destroy();
  });

  it("sends an answer that is too large for one string", async () => {
    const data = Array.from({ length: 20_000 }, (_, i) => i).join(",");
    const body = json.replace("[2]", "[20000]").replace("1,2", data);
    const connection = await connectTo(stand, post("id_int32"));
    await answersOf(connection, 1);
    connection.socket.write(post("id_int32", body));
    expect((await answersOf(connection, 2)).at(-1)).toContain(data);
    connection.socket.destroy();
  });

  it("refuses a body beyond the limit", async () => {
    const connection = await connectTo(stand, post("id_int32", " ".repeat(2 ** 20 + 1)));
    expect((await answersOf(connection, 1))[0]).toContain("exceeds the maximum allowed input size");
    connection.socket.destroy();
  });

  it("tells when to come again", async () => {
    // oxlint-disable-next-line require-yield -- a model that only refuses
    stand.engine.add(servedModel("busy", config), function* () {
      throw new InferenceError(StatusCode.Unavailable, "busy", { retryAfterSeconds: 1.5 });
    });
    const connection = await connectTo(stand, post("busy"));
    const [answer] = await answersOf(connection, 1);
    expect(answer).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\n/u);
    expect(answer).toContain("\r\nRetry-After: 2\r\n");
    connection.socket.destroy();
  });

  it.for(["destroy", "end"] as const)(
    "lets go of a request whose client hangs up by %s",
    async (how) => {
      const cancelled = Promise.withResolvers<void>();
      const running = Promise.withResolvers<void>();
      stand.engine.add(servedModel("endless", config), async function* (request, call) {
        running.resolve();
        call.onCancel(() => cancelled.resolve());
        await cancelled.promise;
        yield echo(request);
      });
      const connection = await connectTo(stand, post("endless"));
      await running.promise;
      connection.socket[how]();
      await cancelled.promise;
      expect(String(await connection.ended)).toBe("");
    },
  );

  it("answers what is under way when the server closes, and then ends the connection", async () => {
    const closing = await HttpStand.start();
    const gate = Promise.withResolvers<void>();
    const running = Promise.withResolvers<void>();
    closing.engine.add(servedModel("held", config), async function* (request) {
      running.resolve();
      await gate.promise;
      yield echo(request);
    });
    const idle = await connectTo(closing, post("id_int32"));
    await answersOf(idle, 1);
    const busy = await connectTo(closing, post("held"));
    await running.promise;
    const closed = closing.stop();
    await idle.ended;
    gate.resolve();
    expect(String(await busy.ended)).toMatch(/^HTTP\/1\.1 200 OK\r\n.*Connection: close\r\n/su);
    await closed;
  });

  it("ends a connection on which nothing is asked for too long, however long an answer takes", async () => {
    const body = replyBody({ head: "late", tail: [] });
    const server = createServer((socket) => {
      // oxlint-disable-next-line no-new -- it lives as long as its socket
      new PlainConnection(socket, {
        answer: () => sleep(200, { status: 200, headers: [], body }),
        maxInputBytes: 1000,
        keepAliveMilliseconds: 50,
        maxRequests: Infinity,
        handOver: (handed) => void handed.destroy(),
      });
    });
    const port = await listen(server, { host: "127.0.0.1", port: 0 });
    const connection = await rawConnection(`127.0.0.1:${port}`, post("slow"));
    expect(String(await connection.ended)).toMatch(/\r\n\r\nlate$/u);
    server.close();
    await once(server, "close");
  });
});
