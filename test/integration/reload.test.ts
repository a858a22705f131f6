import { describe, expect, it } from "vitest";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { eventually } from "../helpers/eventually.ts";
import { serving } from "../helpers/serving.ts";

const clientCount = 16;

describe("a reload", () => {
  const running = serving(
    (models) => models.model("m", { 1: addingModel(1) }),
    "--model-control-mode=explicit",
    "--load-model=m",
  );

  const reload = async (): Promise<number> =>
    (await running.http.post("/v2/repository/models/m/load")).status;

  /** What the model adds, asked over HTTP or gRPC. */
  async function ask(overGrpc: boolean): Promise<number> {
    if (!overGrpc) {
      const answer = await running.http.infer("m", addingBody);
      if (answer.status !== 200) throw new Error(answer.text);
      return JSON.parse(answer.text).outputs[0].data[0];
    }
    const { rawOutputContents } = await running.grpc.infer({
      modelName: "m",
      inputs: [{ name: "x", datatype: "FP32", shape: [1] }],
      rawInputContents: [Buffer.alloc(4)],
    });
    return rawOutputContents[0].readFloatLE();
  }

  it("drops no request and never goes back to the old model", async () => {
    const ending = new AbortController();
    const seen = Array.from({ length: clientCount }, (): number[] => []);
    const clients = seen.map(async (values, i) => {
      while (!ending.signal.aborted) values.push(await ask(i % 2 === 0));
    });
    const everybodySaw = (value: number): Promise<void> =>
      eventually(() => expect(seen.every((values) => values.includes(value))).toBe(true));
    await everybodySaw(1);
    for (const number of [2, 3, 4]) {
      running.models.model("m", { 1: addingModel(number) });
      expect(await reload()).toBe(200);
      expect(await ask(false)).toBe(number);
      await everybodySaw(number);
    }
    // A version directory more: the model's next version takes over from the last.
    running.models.model("m", { 2: addingModel(5) });
    expect(await reload()).toBe(200);
    await everybodySaw(5);
    ending.abort();
    await Promise.all(clients);
    for (const values of seen) expect(values).toEqual(values.toSorted((a, b) => a - b));
    expect(Math.min(...seen.map(({ length }) => length))).toBeGreaterThan(20);
  });

  it("that fails leaves the old model answering, with the reason beside it", async () => {
    running.models.write("m/2/model.onnx", "this is no model");
    const answer = await running.http.post("/v2/repository/models/m/load");
    expect(answer.status).toBe(400);
    expect(answer.text).toContain("load failed for model 'm': version 2 is at UNAVAILABLE state");
    expect(await ask(false)).toBe(5);
    const index = JSON.parse((await running.http.post("/v2/repository/index")).text);
    expect(index).toContainEqual(
      expect.objectContaining({
        name: "m",
        version: "2",
        state: "READY",
        reason: expect.stringContaining("m"),
      }),
    );
  });
});
