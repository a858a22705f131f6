import { afterEach, describe, expect, it } from "vitest";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { type Serving, startServing, stopServing } from "../helpers/serving.ts";

const started: (Serving | ModelDirectory)[] = [];

afterEach(async () => {
  for (const one of started.splice(0)) {
    if (one instanceof ModelDirectory) one.remove();
    else await stopServing(one);
  }
});

/** Models that add their number, and one that does not load. */
function repository(adding: Readonly<Record<string, number>>, ...bad: string[]): ModelDirectory {
  const models = new ModelDirectory();
  started.push(models);
  for (const [name, number] of Object.entries(adding))
    models.model(name, { 1: addingModel(number) });
  for (const name of bad) models.model(name, { 1: "this is no model" });
  return models;
}

async function start(models: ModelDirectory, ...flags: string[]): Promise<Serving> {
  const running = await startServing(models, ...flags);
  started.push(running);
  return running;
}

/** What each model adds, or the status of the refusal. */
async function answers({ http }: Serving, ...paths: string[]): Promise<number[]> {
  return Promise.all(
    paths.map(async (path) => {
      const answer = await http.infer(path, addingBody);
      return answer.status === 200 ? JSON.parse(answer.text).outputs[0].data[0] : answer.status;
    }),
  );
}

async function ready({ http }: Serving): Promise<number> {
  return (await http.get("/v2/health/ready")).status;
}

async function index({ http }: Serving): Promise<unknown> {
  return JSON.parse((await http.post("/v2/repository/index")).text);
}

const readyLine = (name: string, version = "1"): object => ({ name, version, state: "READY" });

describe("--model-control-mode=none", () => {
  it("loads every model and lets no client load or unload", async () => {
    const running = await start(repository({ a: 1, b: 2 }));
    expect(await answers(running, "a", "b")).toEqual([1, 2]);
    expect(await index(running)).toEqual([readyLine("a"), readyLine("b")]);
    for (const action of ["load", "unload"]) {
      const answer = await running.http.post(`/v2/repository/models/a/${action}`);
      expect(answer.status).toBe(503);
      expect(answer.text).toContain("explicit model load / unload is not allowed");
    }
  });
});

describe("--model-control-mode=explicit", () => {
  it("loads what --load-model names, and the rest when it is asked", async () => {
    const models = repository({ a: 1, b: 2, c: 3 });
    const explicit = "--model-control-mode=explicit";
    const running = await start(models, explicit, "--load-model=a", "--load-model=b");
    expect(await answers(running, "a", "b", "c")).toEqual([1, 2, 404]);
    expect(await index(running)).toEqual([readyLine("a"), readyLine("b"), { name: "c" }]);
    expect((await running.http.post("/v2/repository/models/c/load")).status).toBe(200);
    expect((await running.http.post("/v2/repository/models/a/unload")).status).toBe(200);
    expect(await answers(running, "a", "b", "c")).toEqual([404, 2, 3]);
    expect(await ready(running)).toBe(200);
    expect((await running.http.post("/v2/repository/models/none/load")).status).toBe(500);
    expect(await ready(running)).toBe(200);
  });

  it("loads nothing without --load-model, and everything with '*'", async () => {
    const none = await start(repository({ a: 1, b: 2 }), "--model-control-mode=explicit");
    expect(await answers(none, "a", "b")).toEqual([404, 404]);
    expect(await ready(none)).toBe(200);
    const all = await start(
      repository({ a: 1, b: 2 }),
      "--model-control-mode=explicit",
      "--load-model=*",
    );
    expect(await answers(all, "a", "b")).toEqual([1, 2]);
  });
});

describe("a model that fails at the start", () => {
  it("ends the server with 1, unless --exit-on-error=false", async () => {
    await expect(startServing(repository({ a: 1 }, "bad"))).rejects.toThrow(
      /failed to load all models/u,
    );
    const running = await start(repository({ a: 1 }, "bad"), "--exit-on-error=false");
    expect(await answers(running, "a", "bad")).toEqual([1, 404]);
    expect(await ready(running)).toBe(400);
    expect(await index(running)).toContainEqual({
      name: "bad",
      version: "1",
      state: "UNAVAILABLE",
      reason: expect.stringContaining("bad"),
    });
  });

  it("does not make the server unready with --strict-readiness=false", async () => {
    const flags = ["--exit-on-error=false", "--strict-readiness=false"];
    const running = await start(repository({ a: 1 }, "bad"), ...flags);
    expect(await ready(running)).toBe(200);
    expect((await running.http.get("/v2/models/bad/ready")).status).toBe(400);
    expect(await running.grpc.ask("ServerReady", {})).toEqual({ ready: true });
  });
});

describe("several model repositories", () => {
  it("are served as one, without the names that stand in two of them", async () => {
    const second = repository({ b: 20, c: 30 });
    const flags = [`--model-repository=${second.path}`, "--exit-on-error=false"];
    const running = await start(repository({ a: 1, b: 2 }), ...flags);
    expect(await answers(running, "a", "b", "c")).toEqual([1, 404, 30]);
    expect(await index(running)).toContainEqual({
      name: "b",
      state: "UNAVAILABLE",
      reason: "not unique across all model repositories",
    });
  });
});

describe("version_policy", () => {
  it("chooses the versions that answer, by number or as the highest", async () => {
    const models = repository({});
    const versions = { 1: addingModel(1), 2: addingModel(2), 10: addingModel(10) };
    models.model("default", versions);
    models.model("latest", versions, "version_policy: { latest: { num_versions: 2 } }");
    models.model("all", versions, "version_policy: { all: {} }");
    models.model("specific", versions, "version_policy: { specific: { versions: [1, 2] } }");
    const running = await start(models);
    const seen: Record<string, number[]> = {};
    for (const name of ["default", "latest", "all", "specific"]) {
      const paths = [name, ...[1, 2, 10].map((version) => `${name}/versions/${version}`)];
      seen[name] = await answers(running, ...paths);
    }
    expect(seen).toEqual({
      default: [10, 404, 404, 10],
      latest: [10, 404, 2, 10],
      all: [10, 1, 2, 10],
      specific: [2, 1, 2, 404],
    });
    const { text } = await running.http.get("/v2/models/all");
    expect(JSON.parse(text)).toMatchObject({ versions: ["1", "2", "10"] });
  });
});
