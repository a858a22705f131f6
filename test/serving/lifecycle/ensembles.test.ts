import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../helpers/eventually.ts";
import { LifecycleStand } from "../../helpers/lifecycle-stand.ts";
import { pendingRequest, requestFor } from "../../helpers/requests.ts";

const tensors = (dims: number): string =>
  `max_batch_size: 4 input { name: "X" data_type: TYPE_FP32 dims: ${dims} } output { name: "Y" data_type: TYPE_FP32 dims: ${dims} }`;
const step = (model: string, from: string, to: string, version = -1): string =>
  `step { model_name: "${model}" model_version: ${version} input_map { key: "X" value: "${from}" } output_map { key: "Y" value: "${to}" } }`;

let stand: LifecycleStand;
beforeEach(() => {
  stand = new LifecycleStand();
});
afterEach(() => stand.close());

const load = (name: string, config?: string): Promise<void> =>
  stand.lifecycle.load(name, config === undefined ? {} : { config });
const unload = (name: string, unloadDependents = false): Promise<void> =>
  stand.lifecycle.unload(name, { unloadDependents });
const ready = (): string[] => stand.lifecycle.running().map(({ model }) => model.name);
const refusalOf = async (name: string): Promise<string> =>
  load(name).then(
    () => "loaded",
    (error: Error) => error.message,
  );

function part(name: string, text = "fine", dims = 2): void {
  stand.directory.model(name, { 1: text }, tensors(dims));
}

/** An ensemble of the given steps, from X to Y. */
function ensemble(name: string, ...steps: readonly string[]): void {
  const config = `platform: "ensemble" ${tensors(2)} ensemble_scheduling { ${steps.join(" ")} }`;
  stand.directory.write(`${name}/config.pbtxt`, config);
  stand.directory.write(`${name}/1/empty`, "");
}

function pair(name: string, first: string, second: string): void {
  ensemble(name, step(first, "X", "middle"), step(second, "middle", "Y"));
}

describe("ModelLifecycle with ensembles", () => {
  beforeEach(() => {
    part("a");
    part("b");
    pair("e", "a", "b");
    pair("outer", "e", "a");
  });

  it("loads what an ensemble is composed of before it, each model once", async () => {
    await load("outer");
    expect(ready()).toEqual(["a", "b", "e", "outer"]);
    expect(stand.versions.attempts).toBe(2);
  });

  it("leaves the models of an ensemble that is unloaded, or takes those along that nobody else wants", async () => {
    await load("b");
    await load("outer");
    await unload("outer");
    expect(ready()).toEqual(["a", "b", "e"]);
    pair("other", "a", "a");
    await load("other");
    await unload("e", true);
    expect(ready()).toEqual(["a", "b", "other"]);
    await unload("other", true);
    expect(ready()).toEqual(["b"]);
  });

  it("retires ensembles when a part goes, and starts them again when it comes back", async () => {
    await load("outer");
    await unload("b");
    expect(ready()).toEqual(["a"]);
    expect(stand.answer("e")).toContain("'e' has no available versions");
    expect(stand.lifecycle.ready()).toBe(true);
    await load("b");
    expect(ready()).toEqual(["a", "b", "e", "outer"]);
    await unload("e");
    await load("b");
    expect(ready()).toEqual(["a", "b"]);
  });

  it("retires an ensemble whose part does not fit any more, until it does again", async () => {
    await load("e");
    part("b", "wider", 3);
    await load("b");
    expect(ready()).toEqual(["a", "b"]);
    expect(stand.log.warnings).toEqual([
      expect.stringContaining("inconsistent shape: [-1,2] is inferred from model a while [-1,3]"),
    ]);
    part("b", "as before");
    await load("b");
    expect(ready()).toEqual(["a", "b", "e"]);
  });

  it("goes over to the new version of a part, and lets the old one end", async () => {
    await load("e");
    const before = stand.lifecycle.find("e", "");
    const old = stand.versions.started.find(({ model }) => model.name === "b");
    part("b", "newer");
    await load("b");
    expect(stand.lifecycle.find("e", "")).not.toBe(before);
    await eventually(() => expect(old?.closed).toBe(true));
    const after = stand.lifecycle.find("e", "");
    await load("e");
    expect(stand.lifecycle.find("e", "")).toBe(after);
  });

  it("keeps a part from ending until the ensemble has answered what it has taken", async () => {
    await load("e");
    const { scheduler, model } = stand.lifecycle.find("e", "");
    const input = { name: "X", datatype: "FP32", shape: [1, 2], bytes: new Uint8Array(8) } as const;
    // Versions made of texts never answer: it waits until it is cancelled.
    const waiting = pendingRequest(requestFor(model, [1, 2], { inputs: [input] }));
    scheduler.enqueue(waiting);
    await unload("b");
    const old = stand.versions.started.find((version) => version.model.name === "b");
    expect(await stand.index("e")).toMatchObject([{ state: "UNLOADING" }]);
    expect(await stand.index("b")).toMatchObject([{ state: "UNLOADING" }]);
    expect(old?.closed).toBe(false);
    waiting.call.cancel();
    await eventually(() => expect(old?.closed).toBe(true));
  });

  it("leaves an ensemble as it was when it cannot be loaded anew", async () => {
    await load("e");
    const before = stand.lifecycle.find("e", "");
    ensemble("e", step("nobody", "X", "Y"));
    await expect(load("e")).rejects.toThrow("not available or ambiguous: nobody");
    expect(stand.lifecycle.find("e", "")).toBe(before);
    expect(() => stand.lifecycle.find("nobody", "")).toThrow("'nobody' is not found");
    part("b", "newer");
    await load("b");
    expect(ready()).toEqual(["a", "b", "e"]);
  });

  it("starts an ensemble late when its parts come late", async () => {
    pair("late", "a", "c");
    expect(await refusalOf("late")).toContain("not available or ambiguous: c");
    expect(stand.lifecycle.ready()).toBe(false);
    part("c");
    await load("c");
    expect(ready()).toEqual(["a", "c", "late"]);
    expect(stand.lifecycle.ready()).toBe(true);
  });

  it.each([
    [
      [step("nobody", "X", "Y")],
      "ensemble bad contains models that are not available or ambiguous: nobody\n",
    ],
    [
      [step("broken", "X", "Y")],
      "ensemble 'bad' depends on 'broken' which has no loaded version. Model 'broken' loading failed with error: version 1 is at UNAVAILABLE state: broken is broken;\n",
    ],
    [
      [step("a", "X", "Y", 9)],
      "ensemble 'bad' depends on 'a' whose required version 9 is not loaded.\n",
    ],
    [[step("bad", "X", "Y")], "circular dependency between ensembles: bad -> ... -> bad -> bad\n"],
  ])("says why it cannot load an ensemble of %j", async (steps, reason) => {
    part("broken", "broken");
    ensemble("bad", ...steps);
    expect(await refusalOf("bad")).toBe(`load failed for model 'bad': ${reason}`);
    expect(await stand.index("bad")).toMatchObject([
      { state: "UNAVAILABLE", reason: reason.trim() },
    ]);
  });

  it("answers as often as a part of it does", async () => {
    const many = `${tensors(2)} model_transaction_policy { decoupled: true }`;
    stand.directory.model("many", { 1: "x" }, many);
    ensemble("streaming", step("many", "X", "Y"));
    await load("streaming");
    const { config } = stand.lifecycle.find("streaming", "").model;
    expect(config.modelTransactionPolicy).toEqual({ decoupled: true });
  });

  it("refuses an ensemble whose own config is wrong before it loads anything", async () => {
    ensemble("bad", step("a", "X", "Y"), step("a", "X", "Y"));
    expect(await refusalOf("bad")).toContain(
      "failed to load 'bad', failed to poll from model repository: ensemble tensor 'Y' can appear",
    );
    expect(ready()).toEqual([]);
  });

  it("does not wait for ever for ensembles that wait for each other", async () => {
    pair("one", "two", "a");
    pair("two", "one", "a");
    const refusals = await Promise.all([refusalOf("one"), refusalOf("two")]);
    for (const refusal of refusals) expect(refusal).toContain("circular dependency");
    await stand.close();
    stand = new LifecycleStand({ loadModels: ["*"] });
    pair("one", "two", "two");
    pair("two", "one", "one");
    expect((await stand.lifecycle.start()).map(({ name }) => name)).toEqual(["one", "two"]);
  });

  it("keeps nothing of an ensemble that is not in the repository and cannot be loaded", async () => {
    const config = JSON.stringify({
      platform: "ensemble",
      input: [{ name: "X", data_type: "TYPE_FP32", dims: [2] }],
      output: [{ name: "Y", data_type: "TYPE_FP32", dims: [2] }],
      ensemble_scheduling: {
        step: [
          {
            model_name: "nobody",
            model_version: -1,
            input_map: { X: "X" },
            output_map: { Y: "Y" },
          },
        ],
      },
    });
    const files = new Map([["1/empty", new Uint8Array()]]);
    await expect(stand.lifecycle.load("guest", { config, files })).rejects.toThrow("nobody");
    expect(await stand.index("guest")).toEqual([]);
    expect(() => stand.lifecycle.find("guest", "")).toThrow("'guest' is not found");
  });
});

describe("ModelLifecycle watching a repository with ensembles", () => {
  it("starts, retires and renews ensembles as their parts come, go and change", async () => {
    await stand.close();
    stand = new LifecycleStand({ mode: "poll" });
    pair("e", "a", "b");
    part("a");
    expect((await stand.lifecycle.start()).map(({ name }) => name)).toEqual(["e"]);
    part("b");
    await eventually(() => expect(ready()).toEqual(["a", "b", "e"]));
    stand.directory.remove("a");
    await eventually(() => expect(ready()).toEqual(["b"]));
    part("a", "again");
    await eventually(() => expect(ready()).toEqual(["a", "b", "e"]));
  });
});
