import { describe, expect, it } from "vitest";
import { busyBody, busyModel } from "../helpers/busy-model.ts";
import { serving } from "../helpers/serving.ts";

describe("instances", () => {
  const running = serving((models) => {
    models.model("one", { 1: busyModel() }, "instance_group [{ count: 1 }]");
    models.model("other", { 1: busyModel() }, "instance_group [{ count: 1 }]");
    models.model("pair", { 1: busyModel() }, "instance_group [{ count: 2 }]");
  });

  /** The milliseconds that all executions of a model took, added up. */
  async function computeMilliseconds(name: string): Promise<number> {
    const { text } = await running.http.get(`/v2/models/${name}/stats`);
    return JSON.parse(text).model_stats[0].inference_stats.compute_infer.ns / 1e6;
  }

  // However few cores there are: what runs at the same time takes less together than its parts added up.
  it.each([
    ["of different models", ["one", "other"]],
    ["of one model", ["pair", "pair"]],
  ])("%s run at the same time", async (_, names) => {
    const began = performance.now();
    const answers = await Promise.all(
      names.map((name) => running.http.infer(name, busyBody(300_000))),
    );
    const together = performance.now() - began;
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    const parts = await Promise.all([...new Set(names)].map(computeMilliseconds));
    expect(together).toBeLessThan(0.8 * parts.reduce((sum, part) => sum + part, 0));
  });

  it("of a busy model leave the server free to answer others", async () => {
    let busy = true;
    const long = running.http.infer("one", busyBody(800_000)).finally(() => (busy = false));
    for (let i = 0; i < 20; i += 1) {
      expect((await running.http.infer("other", busyBody(1))).status).toBe(200);
      expect((await running.http.get("/v2/health/ready")).status).toBe(200);
    }
    expect(busy).toBe(true);
    expect((await long).status).toBe(200);
  });
});
