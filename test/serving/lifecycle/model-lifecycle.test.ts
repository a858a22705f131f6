import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../helpers/eventually.ts";
import { LifecycleStand } from "../../helpers/lifecycle-stand.ts";

const allVersions = "version_policy { all {} }";
const keep = { unloadDependents: false };
const unloaded = { state: "UNAVAILABLE", reason: "unloaded" };

let stand: LifecycleStand;
beforeEach(() => {
  stand = new LifecycleStand();
});
afterEach(() => stand.close());

const load = (name: string): Promise<void> => stand.lifecycle.load(name, {});
const unload = (name: string): Promise<void> => stand.lifecycle.unload(name, keep);

describe("ModelLifecycle finding a version", () => {
  beforeEach(async () => {
    stand.directory.model("m", { 1: "one", 2: "two", 10: "ten" }, allVersions);
    stand.directory.model("bad", { 1: "broken" });
    await load("m");
    await load("bad").catch(() => {});
  });

  it.each([
    ["", "10: ten"],
    ["2", "2: two"],
    ["010", "10: ten"],
  ])("finds version %j", (version, answer) => {
    expect(stand.answer("m", version)).toBe(answer);
  });

  it.each([
    ["who", "", "NOT_FOUND", "Request for unknown model: 'who' is not found"],
    ["who", "1", "NOT_FOUND", "Request for unknown model: 'who' is not found"],
    ["m", "7", "NOT_FOUND", "Request for unknown model: 'm' version 7 is not found"],
    ["m", "0", "NOT_FOUND", "Request for unknown model: 'm' version 0 is not found"],
    ["bad", "", "NOT_FOUND", "Request for unknown model: 'bad' has no available versions"],
    ["bad", "1", "UNAVAILABLE", "Request for unknown model: 'bad' version 1 is not at ready state"],
    [
      "m",
      "-1",
      "INVALID_ARG",
      "invalid model version specified '-1' , version should be an integral value > 0",
    ],
    [
      "m",
      "abc",
      "INVALID_ARG",
      "failed to get model version from specified version string 'abc' (details: stol), version should be an integral value > 0",
    ],
    [
      "who",
      "1.5",
      "INVALID_ARG",
      "failed to get model version from specified version string '1.5' (details: stol), version should be an integral value > 0",
    ],
    [
      "m",
      "9223372036854775808",
      "INVALID_ARG",
      "failed to get model version from specified version string '9223372036854775808' (details: stol), version should be an integral value > 0",
    ],
    [
      "m",
      "9223372036854775807",
      "NOT_FOUND",
      "Request for unknown model: 'm' version 9223372036854775807 is not found",
    ],
  ])("says why nobody answers for %j version %j", (name, version, code, message) => {
    expect(() => stand.lifecycle.find(name, version)).toThrow(
      expect.objectContaining({ code, message }),
    );
  });

  it("gives all versions that answer, ascending", () => {
    const versions = stand.lifecycle.versions("m").map(({ model }) => model.version);
    expect(versions).toEqual(["1", "2", "10"]);
    expect(stand.lifecycle.running()).toHaveLength(3);
    expect(stand.lifecycle.versions("who")).toEqual([]);
  });
});

describe("ModelLifecycle loading", () => {
  it("shows a model in the index from never loaded over loading to ready", async () => {
    stand.directory.model("m", { 1: "one" });
    expect(await stand.index("m")).toEqual([{ name: "m" }]);
    const gate = Promise.withResolvers<void>();
    stand.versions.loading = gate.promise;
    const loading = load("m");
    await eventually(async () =>
      expect(await stand.index("m")).toEqual([{ name: "m", version: "1", state: "LOADING" }]),
    );
    expect(stand.lifecycle.ready()).toBe(false);
    expect(stand.answer("m")).toContain("has no available versions");
    expect(stand.answer("m", "1")).toContain("is not at ready state");
    gate.resolve();
    await loading;
    expect(await stand.index("m")).toEqual([{ name: "m", version: "1", state: "READY" }]);
    expect(stand.lifecycle.ready()).toBe(true);
    expect(await stand.lifecycle.index(true)).toHaveLength(1);
  });

  it("tells how long a load took", async () => {
    stand.directory.model("m", { 1: "one" });
    stand.versions.loading = new Promise((resolve) => setTimeout(resolve, 20));
    await load("m");
    const { loadSeconds } = await stand.last().statistics.observe();
    expect(loadSeconds).toBeGreaterThan(0.015);
    expect(loadSeconds).toBeLessThan(5);
  });

  it("does nothing when no file has changed", async () => {
    stand.directory.model("m", { 1: "one" });
    await load("m");
    await load("m");
    expect(stand.versions.started).toHaveLength(1);
  });

  it("loads a version that was added beside those that serve, without touching them", async () => {
    stand.directory.model("m", { 1: "one" }, allVersions);
    await load("m");
    const [one] = stand.versions.started;
    stand.directory.write("m/2/model.onnx", "two");
    await load("m");
    expect(stand.versions.started).toHaveLength(2);
    expect(stand.lifecycle.find("m", "1")).toBe(one);
    expect(stand.answer("m")).toBe("2: two");
  });

  it("moves to the latest version, and leaves the old one unloaded in the index", async () => {
    stand.directory.model("m", { 1: "one" });
    await load("m");
    stand.directory.write("m/2/model.onnx", "two");
    await load("m");
    expect(stand.answer("m")).toBe("2: two");
    await eventually(async () =>
      expect(await stand.index("m")).toEqual([
        { name: "m", version: "1", state: "UNAVAILABLE", reason: "unloaded" },
        { name: "m", version: "2", state: "READY" },
      ]),
    );
  });

  it("refuses a load with the reasons of the versions that failed, and serves none of the others", async () => {
    stand.directory.model("m", { 1: "one", 2: "broken", 3: "broken too" }, allVersions);
    await expect(load("m")).rejects.toMatchObject({
      code: "INVALID_ARG",
      message:
        "load failed for model 'm': version 2 is at UNAVAILABLE state: m is broken;\nversion 3 is at UNAVAILABLE state: m is broken too;\n",
    });
    await eventually(async () =>
      expect(await stand.index("m")).toEqual([
        { name: "m", version: "1", state: "UNAVAILABLE", reason: "unloaded" },
        { name: "m", version: "2", state: "UNAVAILABLE", reason: "m is broken" },
        { name: "m", version: "3", state: "UNAVAILABLE", reason: "m is broken too" },
      ]),
    );
    expect(stand.versions.started.map(({ closed }) => closed)).toEqual([true]);
    expect(stand.lifecycle.ready()).toBe(false);
  });

  it("refuses a model whose policy leaves no version", async () => {
    stand.directory.model("m", {});
    const text = "at least one version must be available under the version policy of model 'm'";
    await expect(load("m")).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: `load failed for model 'm': ${text}\n`,
    });
    expect(await stand.index("m")).toEqual([{ name: "m", state: "UNAVAILABLE", reason: text }]);
    expect(stand.log.errors).toContainEqual([text, { model: "m" }]);
  });

  it("warns of a version that its policy names and nobody has put there", async () => {
    const policy = "version_policy { specific { versions: [1, 99] } }";
    stand.directory.model("m", { 1: "one", 2: "two" }, policy);
    await load("m");
    expect(stand.log.warnings).toEqual([
      "model 'm': version 99 of its version policy is not in the repository",
    ]);
  });

  it("says why a config cannot be used", async () => {
    stand.directory.model("m", { 1: "one" }, 'name: "other"');
    const reason =
      "unexpected directory name 'm' for model 'other', directory name must equal model name";
    await expect(load("m")).rejects.toMatchObject({
      code: "INTERNAL",
      message: `failed to load 'm', failed to poll from model repository: ${reason}`,
    });
    expect(await stand.index("m")).toEqual([{ name: "m", state: "UNAVAILABLE", reason }]);
  });

  it("refuses a name that two repositories have", async () => {
    stand.directory.model("m", { 1: "one" });
    stand.second.model("m", { 1: "one" });
    const line = {
      name: "m",
      state: "UNAVAILABLE",
      reason: "not unique across all model repositories",
    };
    expect(await stand.index("m")).toEqual([line]);
    await expect(load("m")).rejects.toThrow("not unique across all model repositories");
    expect(await stand.index("m")).toEqual([line]);
  });

  it("shows a model that serves as such when another repository has its name, too", async () => {
    stand.directory.model("m", { 1: "one" });
    await load("m");
    stand.second.model("m", { 1: "one" });
    expect(await stand.index("m")).toEqual([{ name: "m", version: "1", state: "READY" }]);
  });

  it("keeps nothing of names that are not in the repository", async () => {
    await expect(load("nothing")).rejects.toMatchObject({
      code: "INTERNAL",
      message:
        "failed to load 'nothing', failed to poll from model repository: model not found in any model repository",
    });
    await expect(load("../up")).rejects.toMatchObject({ code: "INVALID_ARG" });
    await unload("nothing");
    expect(await stand.lifecycle.index(false)).toEqual([]);
    expect(stand.answer("nothing")).toContain("'nothing' is not found");
  });
});

describe("ModelLifecycle reloading", () => {
  beforeEach(async () => {
    stand.directory.model("m", { 1: "old" });
    await load("m");
  });

  it("serves the old version until the new one can, and lets it finish what it has", async () => {
    stand.directory.write("m/1/model.onnx", "newer");
    const gate = Promise.withResolvers<void>();
    stand.versions.loading = gate.promise;
    const loading = load("m");
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(stand.answer("m")).toBe("1: old");
    expect(await stand.index("m")).toEqual([{ name: "m", version: "1", state: "READY" }]);
    expect(stand.versions.started[0]?.closed).toBe(false);
    gate.resolve();
    await loading;
    expect(stand.answer("m")).toBe("1: newer");
    await eventually(() => expect(stand.versions.started[0]?.closed).toBe(true));
    expect(await stand.index("m")).toEqual([{ name: "m", version: "1", state: "READY" }]);
  });

  it("keeps the old version when the new one fails, and shows the reason until a load succeeds", async () => {
    stand.directory.write("m/1/model.onnx", "broken now");
    await expect(load("m")).rejects.toThrow("version 1 is at UNAVAILABLE state: m is broken now;");
    await expect(load("m")).rejects.toThrow("m is broken now");
    expect(stand.answer("m")).toBe("1: old");
    expect(stand.lifecycle.ready()).toBe(true);
    const ready = { name: "m", version: "1", state: "READY" };
    expect(await stand.index("m")).toEqual([{ ...ready, reason: "m is broken now" }]);
    stand.directory.write("m/1/model.onnx", "good again");
    await load("m");
    expect(await stand.index("m")).toEqual([ready]);
  });

  it("keeps the old version when the new config cannot be read or the model is gone", async () => {
    stand.directory.write("m/config.pbtxt", "nonsense: 1");
    await expect(load("m")).rejects.toThrow("failed to poll from model repository: config.pbtxt");
    expect(stand.answer("m")).toBe("1: old");
    expect(await stand.index("m")).toMatchObject([
      { state: "READY", reason: expect.stringContaining("config.pbtxt") },
    ]);
    stand.directory.remove("m");
    await expect(load("m")).rejects.toThrow("model not found");
    expect(stand.answer("m")).toBe("1: old");
  });
});

describe("ModelLifecycle unloading", () => {
  beforeEach(() => stand.directory.model("m", { 1: "one" }));

  it("returns at once, finds the version no more, and lets it finish what it has", async () => {
    const requests = Promise.withResolvers<void>();
    stand.versions.inflight = requests.promise;
    await load("m");
    await unload("m");
    const line = { name: "m", version: "1" };
    expect(await stand.index("m")).toEqual([{ ...line, state: "UNLOADING" }]);
    expect(stand.answer("m")).toContain("'m' has no available versions");
    expect(stand.answer("m", "1")).toContain("'m' version 1 is not at ready state");
    expect(stand.last().closed).toBe(false);
    requests.resolve();
    await eventually(async () =>
      expect(await stand.index("m")).toEqual([
        { ...line, state: "UNAVAILABLE", reason: "unloaded" },
      ]),
    );
    expect(stand.last().closed).toBe(true);
    expect(stand.lifecycle.ready()).toBe(true);
  });

  it("loads again while the old version still finishes", async () => {
    const requests = Promise.withResolvers<void>();
    stand.versions.inflight = requests.promise;
    await load("m");
    await unload("m");
    await load("m");
    expect(stand.answer("m")).toBe("1: one");
    requests.resolve();
    await eventually(() => expect(stand.versions.started[0]?.closed).toBe(true));
    expect(await stand.index("m")).toEqual([{ name: "m", version: "1", state: "READY" }]);
  });

  it("does loads and unloads of one model in the order they came", async () => {
    const gate = Promise.withResolvers<void>();
    stand.versions.loading = gate.promise;
    const done: string[] = [];
    const all = [
      load("m").then(() => done.push("load")),
      unload("m").then(() => done.push("unload")),
      load("m").then(() => done.push("load")),
      unload("m").then(() => done.push("unload")),
    ];
    gate.resolve();
    await Promise.all(all);
    expect(done).toEqual(["load", "unload", "load", "unload"]);
    expect(stand.versions.started).toHaveLength(2);
    expect(stand.answer("m")).toContain("has no available versions");
  });

  it("clears the failure of a model that is not wanted any more", async () => {
    stand.directory.model("bad", { 1: "broken" });
    await load("bad").catch(() => {});
    expect(stand.lifecycle.ready()).toBe(false);
    await unload("bad");
    expect(stand.lifecycle.ready()).toBe(true);
  });

  it("has no line for a model that is unloaded and gone from the repository", async () => {
    await load("m");
    await unload("m");
    await eventually(async () => expect(await stand.index("m")).toMatchObject([unloaded]));
    stand.directory.remove("m");
    expect(await stand.index("m")).toEqual([]);
  });
});
