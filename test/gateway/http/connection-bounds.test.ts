import { once } from "node:events";
import { describe, expect, it, onTestFinished, type TestContext } from "vitest";
import { defaultBounds } from "../../../gateway/http/connection-bounds.ts";
import { eventually } from "../../helpers/eventually.ts";
import { rawConnection, type RawConnection } from "../../helpers/raw-connection.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { isOpenAtServer } from "../../helpers/tcp-state.ts";
import { HttpStand } from "./http-stand.ts";

const body = '{"inputs":[{"name":"IN0","shape":[1],"datatype":"FP32","data":[1]}]}';

/** One that is read without node's parser; a header that says nothing makes it one for node. */
function infer(model = "id_fp32", more = ""): string {
  const path = `/v2/models/${model}/infer`;
  return `POST ${path} HTTP/1.1\r\nHost: x\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`;
}

const forNode = "X-Any: thing\r\n";

/** @param test has to be told by tests that run at the same time */
async function start(
  bounds: Partial<typeof defaultBounds>,
  requestMilliseconds = 300_000,
  test: Pick<TestContext, "onTestFinished"> = { onTestFinished },
): Promise<{
  stand: HttpStand;
  connect: (first?: string) => Promise<RawConnection>;
}> {
  const stand = await HttpStand.start(
    {},
    { bounds: { ...defaultBounds, ...bounds }, requestMilliseconds },
  );
  test.onTestFinished(() => stand.stop());
  const address = `127.0.0.1:${stand.server.port}`;
  return {
    stand,
    async connect(first) {
      const connection = await rawConnection(address, first);
      test.onTestFinished(() => void connection.socket.destroy());
      return connection;
    },
  };
}

/** Far more than what the system keeps of an answer that nobody takes. */
const largeBytes = 32 * 1024 * 1024;

/** Adds a model with such answers; gives how many it has made. */
function addLarge(stand: HttpStand): () => number {
  let ran = 0;
  const config = {
    input: [modelInput("IN0", "TYPE_FP32", [1])],
    output: [modelOutput("OUT0", "TYPE_UINT8", [-1])],
  };
  stand.engine.add(servedModel("large", config), (request) => {
    ran += 1;
    const bytes = Buffer.alloc(largeBytes);
    const outputs = [{ name: "OUT0", datatype: "UINT8" as const, shape: [largeBytes], bytes }];
    return [{ ...request, modelVersion: "1", outputs, parameters: new Map() }];
  });
  return () => ran;
}

function largeInfer(more = ""): string {
  const text = body.replace(
    "]}]}",
    ']}],"outputs":[{"name":"OUT0","parameters":{"binary_data":true}}]}',
  );
  return infer("large", more).replace(body, text).replace(`: ${body.length}`, `: ${text.length}`);
}

describe("boundConnections", () => {
  it.concurrent.for([
    ["that never asks", ""],
    ["after a plain call", infer()],
    ["after any other call", infer("id_fp32", forNode)],
    ["amid the head of a request", "POST /v2/mod"],
    ["amid the head of its second request", `${infer("id_fp32", forNode)}POST /v2/mod`],
  ] as const)("closes a connection %s", async ([, first], test) => {
    const { connect } = await start({ keepAliveMilliseconds: 150 }, undefined, test);
    const answer = String(await (await connect(first)).ended);
    expect(answer.includes("200 OK")).toBe(first.includes(body));
  });

  it.concurrent.for([
    ["the head", "POST /v2/models/id_fp32/infer HTTP/1.1\r\nHost: x\r\nX-Long: "],
    ["the body", infer().slice(0, -60)],
  ] as const)(
    "ends a connection that sends %s byte by byte behind a plain call",
    async ([, slow], test) => {
      const { connect } = await start({}, 500, test);
      const { socket, ended } = await connect(infer());
      await once(socket, "data");
      socket.write(slow);
      const drip = setInterval(() => socket.write("x"), 50);
      const answers = String(await ended)
        .split("HTTP/1.1 ")
        .slice(1);
      clearInterval(drip);
      expect(answers.map((answer) => answer.slice(0, 3))).toEqual(["200", "408"]);
    },
  );

  it.each([
    ["a plain call", largeInfer()],
    ["any other call", largeInfer(forNode)],
    ["calls that it sends one behind the other", largeInfer(forNode).repeat(20)],
  ])("ends a connection whose client does not take the answer to %s", async (_, first) => {
    const { stand, connect } = await start({ keepAliveMilliseconds: 300 });
    addLarge(stand);
    const { socket } = await connect();
    socket.pause();
    socket.write(first);
    expect(isOpenAtServer(socket)).toBe(true);
    await eventually(() => expect(isOpenAtServer(socket)).toBe(false));
  });

  it.each([
    ["plain calls", largeInfer(), 1],
    ["any calls, but for what node has read already,", largeInfer(forNode), 3],
  ])("computes no more answers to %s than the client takes", async (_, call, most) => {
    const { stand, connect } = await start({ keepAliveMilliseconds: 60_000 });
    const ran = addLarge(stand);
    const { socket } = await connect();
    socket.pause();
    for (let i = 0; i < 10; i++) {
      socket.write(call);
      // oxlint-disable-next-line no-await-in-loop -- one after the other, as a client does that reads
      await eventually(() => expect(ran()).toBeGreaterThan(0));
      // oxlint-disable-next-line no-await-in-loop -- what was sent before has come when this is answered
      expect((await stand.infer("id_fp32", body)).status).toBe(200);
    }
    expect(ran()).toBeLessThanOrEqual(most);
  });

  it("lets a client that is slow to take an answer have it all", async () => {
    const { stand, connect } = await start({ keepAliveMilliseconds: 300 });
    addLarge(stand);
    const connection = await connect();
    const { socket } = connection;
    let received = 0;
    socket.removeAllListeners("data");
    socket.on("data", (chunk: Buffer) => {
      received += chunk.length;
      socket.pause();
      setTimeout(() => socket.resume(), 1);
    });
    socket.write(largeInfer());
    await eventually(() => expect(received).toBeGreaterThan(largeBytes), 30_000);
  }, 40_000);

  it("answers so many requests on one connection, whoever reads them", async () => {
    const { connect } = await start({ maxRequests: 3 });
    const calls = [infer(), infer(), infer("id_fp32", forNode), infer()];
    for (const order of [calls, calls.toReversed(), [infer(), infer(), infer(), infer()]]) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const connection = await connect();
      for (let i = 0; i < 3; i++) {
        connection.socket.write(order[i] ?? "");
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        await eventually(() =>
          expect(String(connection.received).match(/HTTP\/1\.1 200/gu)).toHaveLength(i + 1),
        );
      }
      connection.socket.write(order[3] ?? "");
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const text = String(await connection.ended);
      expect(text.match(/HTTP\/1\.1 200/gu)).toHaveLength(3);
      expect(text.match(/Connection: close/giu)).toHaveLength(1);
    }
  });

  it("closes connections beyond the bound at once, and takes others when some have ended", async () => {
    const { stand, connect } = await start({ maxConnections: 2 });
    const [first] = [await connect(infer()), await connect(infer())];
    expect(await (await connect(infer())).ended).toHaveLength(0);
    first?.socket.end();
    await eventually(async () => {
      expect((await fetch(`${stand.origin}/v2`)).status).toBe(200);
    });
  });
});
