import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { InferenceRequest } from "../../protocol/inference.ts";
import { Envelopes } from "../../queue/envelope.ts";
import { encodeRequests } from "../../queue/request-frame.ts";
import { connect, type Redis } from "../../redis/connection.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";

const model = "m";
const large = 1024 * 1024 + 1;

describe("Envelopes", () => {
  let server: RedisServer;
  let commands: Redis;
  let envelopes: Envelopes;
  beforeAll(async () => {
    server = await startRedis();
    commands = await connect(server.url, "commands");
    envelopes = new Envelopes("pool", commands);
  });
  afterEach(() => commands.flushall());
  afterAll(async () => {
    commands.disconnect();
    await server.stop();
  });

  /** An envelope with a request for each of the sizes. */
  async function put(...sizes: number[]): Promise<void> {
    const requests = sizes.map((size, index) => [index, sentOf(index, size)] as const);
    await envelopes.put("e", encodeRequests({ tenant: "t" }, requests), sizes.length);
  }

  async function taken(only?: number): Promise<string[] | undefined> {
    const envelope = await envelopes.take("e", model, only);
    return envelope && [...envelope.requests.values()].map(({ request }) => request.id).toSorted();
  }

  function keys(): Promise<string[]> {
    return commands.keys("*");
  }

  it("gives all requests with what is said of them, large ones too", async () => {
    await put(1, large, 2);
    const envelope = await envelopes.take("e", model);
    expect(envelope?.head).toEqual({ tenant: "t" });
    expect(envelope?.claimed).toEqual([1]);
    const given = [0, 1, 2].map((index) => envelope?.requests.get(index));
    expect(given).toEqual([sentOf(0, 1), sentOf(1, large), sentOf(2, 2)]);
  });

  it("gives nothing of what is not there", async () => {
    expect(await taken()).toBeUndefined();
  });

  it("gives one request alone when that is asked for", async () => {
    await put(1, 1, 1);
    expect(await taken(1)).toEqual(["1"]);
  });

  it("leaves out what was withdrawn, and forgets large ones at once", async () => {
    await put(1, large, 1);
    expect(await envelopes.withdraw("e", 0)).toBe("withdrawn");
    expect(await envelopes.withdraw("e", 1)).toBe("withdrawn");
    expect(await keys()).toHaveLength(1);
    expect(await taken()).toEqual(["2"]);
  });

  it("is gone with the last request that is withdrawn", async () => {
    await put(1, 1);
    expect(await envelopes.withdraw("e", 1)).toBe("withdrawn");
    expect(await envelopes.withdraw("e", 1)).toBe("gone");
    expect(await envelopes.withdraw("e", 0)).toBe("emptied");
    expect(await envelopes.withdraw("e", 0)).toBe("gone");
    expect(await keys()).toEqual([]);
  });

  it("keeps what was taken from being withdrawn, but lets go of what is dropped", async () => {
    await put(1, 1);
    expect(await taken()).toEqual(["0", "1"]);
    expect(await envelopes.withdraw("e", 0)).toBe("taken");
    await envelopes.drop("e", 0);
    expect(await taken()).toEqual(["1"]);
    await envelopes.drop("e", 1);
    expect(await keys()).toEqual([]);
    await envelopes.drop("e", 1);
    expect(await keys()).toEqual([]);
  });

  it("removes what is answered, large requests too", async () => {
    await put(1, large);
    await envelopes.remove("e", [1]);
    expect(await keys()).toEqual([]);
    await envelopes.remove("e");
  });

  it("tells which are missing", async () => {
    await put(1);
    const given = ["e", "f", "g", "h"];
    await commands.set("elsewhere", "");
    const missing = await envelopes.missing(given.map((id) => [id, id === "g" ? "elsewhere" : ""]));
    expect(missing).toEqual(new Set(["f", "h"]));
  });
});

function sentOf(index: number, size: number): { request: InferenceRequest; receivedAt: number } {
  const bytes = Buffer.alloc(size, index);
  return {
    receivedAt: index,
    request: {
      modelName: model,
      modelVersion: "",
      id: String(index),
      inputs: [{ name: "IN", datatype: "UINT8", shape: [size], bytes }],
      outputs: [],
      parameters: new Map(),
      priority: 0,
      timeoutMicroseconds: 0,
    },
  };
}
