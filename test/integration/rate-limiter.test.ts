import { afterAll, describe, expect, it } from "vitest";
import { busyBody, busyModel } from "../helpers/busy-model.ts";
import { eventually } from "../helpers/eventually.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { scrape } from "../helpers/scrape.ts";
import { type Serving, serving, startServing, stopServing } from "../helpers/serving.ts";

function config(resource: string): string {
  return `instance_group [ { count: 1 kind: KIND_CPU rate_limiter { resources [ { ${resource} } ] } } ]`;
}

function write(models: ModelDirectory): void {
  models.model("a", { 1: busyModel() }, config('name: "R1" count: 3'));
  models.model("b", { 1: busyModel() }, config('name: "R1" count: 2'));
  models.model("greedy", { 1: busyModel() }, config('name: "R1" count: 5'));
  models.model("everywhere", { 1: busyModel() }, config('name: "R1" count: 1 global: true'));
}

/** Who is answered first when `b` is asked while `a` has long executions, of which one runs. */
async function first({ http, server }: Serving): Promise<string | undefined> {
  const answered: string[] = [];
  const ask = async (model: string, turns: number): Promise<void> => {
    expect(await http.infer(model, busyBody(turns))).toMatchObject({ status: 200 });
    answered.push(model);
  };
  const long = Array.from({ length: 4 }, () => ask("a", 1_000_000));
  await eventually(async () => {
    const series = await scrape(server.metrics);
    const waiting = series.get('nv_inference_pending_request_count{model="a",version="1"}');
    expect(waiting).toBeGreaterThan(0);
  });
  await Promise.all([...long, ask("b", 1)]);
  return answered[0];
}

const control = ["--model-control-mode=explicit", "--load-model=a", "--load-model=b"];

describe("the rate limiter", { timeout: 60_000 }, () => {
  const limited = serving(
    write,
    ...control,
    "--rate-limit=execution_count",
    "--rate-limit-resource=R1:4",
  );

  it("keeps models apart that need the same resource", async () => {
    expect(await first(limited)).toBe("a");
  });

  it("refuses a model that could never run", async () => {
    const { http } = limited;
    const greedy = await http.post("/v2/repository/models/greedy/load");
    expect(greedy).toMatchObject({ status: 400 });
    expect(JSON.parse(greedy.text).error).toContain(
      'Resource count for "R1" is limited to 4 which will prevent scheduling of one or more model instances, ' +
        "the minimum required count is 5",
    );
    const everywhere = await http.post("/v2/repository/models/everywhere/load");
    expect(JSON.parse(everywhere.text).error).toContain(
      'Resource "R1" is present as both global and device-specific resource in the model configuration.',
    );
    await http.post("/v2/repository/models/a/unload");
    await http.post("/v2/repository/models/b/unload");
    await expect
      .poll(() => http.post("/v2/repository/models/everywhere/load"), { timeout: 10_000 })
      .toMatchObject({ status: 200 });
  });

  describe("when it is off", () => {
    let free: Serving | undefined;
    afterAll(async () => {
      if (free) await stopServing(free);
    });

    it("keeps no models apart", async () => {
      const models = new ModelDirectory();
      write(models);
      free = await startServing(models, ...control, "--load-model=greedy");
      expect(await first(free)).toBe("b");
    });
  });
});
