import { afterEach, describe, expect, it } from "vitest";
import { eventually } from "../../helpers/eventually.ts";
import { LifecycleStand } from "../../helpers/lifecycle-stand.ts";

let stand: LifecycleStand;
afterEach(() => stand.close());

const notAllowed = {
  code: "UNAVAILABLE",
  message: "explicit model load / unload is not allowed if polling is enabled",
};

describe("ModelLifecycle in mode none", () => {
  it("loads every model at the start and tells which failed", async () => {
    stand = new LifecycleStand({ mode: "none" });
    stand.directory.model("good", { 1: "one" });
    stand.directory.model("bad", { 1: "broken" });
    stand.directory.write("odd/config.pbtxt", "nonsense: 1");
    stand.second.model("other", { 1: "one" });
    const failures = await stand.lifecycle.start();
    expect(failures.map(({ name }) => name)).toEqual(["bad", "odd"]);
    expect(failures[0]?.error.message).toContain("bad is broken");
    expect(stand.lifecycle.running().map(({ model }) => model.name)).toEqual(["good", "other"]);
    expect(stand.lifecycle.ready()).toBe(false);
  });

  it("lets no client load or unload", async () => {
    stand = new LifecycleStand({ mode: "none" });
    stand.directory.model("m", { 1: "one" });
    await stand.lifecycle.start();
    await expect(stand.lifecycle.load("m", {})).rejects.toMatchObject(notAllowed);
    const unloading = stand.lifecycle.unload("m", { unloadDependents: false });
    await expect(unloading).rejects.toMatchObject(notAllowed);
    expect(stand.answer("m")).toBe("1: one");
  });

  it("loads so many versions at a time", async () => {
    stand = new LifecycleStand({ mode: "none", loadThreadCount: 3 });
    for (const name of ["a", "b", "c", "d", "e"])
      stand.directory.model(name, { 1: "one", 2: "two" }, "version_policy { all {} }");
    await stand.lifecycle.start();
    expect(stand.versions.started).toHaveLength(10);
    expect(stand.versions.mostAtOnce).toBe(3);
  });

  it("rejects when the repository cannot be read", async () => {
    stand = new LifecycleStand({ mode: "none" });
    stand.second.remove();
    await expect(stand.lifecycle.start()).rejects.toThrow("model repository: cannot be read");
  });
});

describe("ModelLifecycle in mode explicit", () => {
  it("loads the named models at the start", async () => {
    stand = new LifecycleStand({ loadModels: ["a", "missing"] });
    stand.directory.model("a", { 1: "one" });
    stand.directory.model("b", { 1: "one" });
    const failures = await stand.lifecycle.start();
    expect(failures.map(({ name }) => name)).toEqual(["missing"]);
    expect(stand.lifecycle.running().map(({ model }) => model.name)).toEqual(["a"]);
  });

  it("loads all models for *", async () => {
    stand = new LifecycleStand({ loadModels: ["*"] });
    stand.directory.model("a", { 1: "one" });
    stand.directory.model("b", { 1: "one" });
    expect(await stand.lifecycle.start()).toEqual([]);
    expect(stand.lifecycle.running()).toHaveLength(2);
  });
});

describe("ModelLifecycle in mode poll", () => {
  it("follows models that are added, changed and removed", async () => {
    stand = new LifecycleStand({ mode: "poll" });
    stand.directory.model("a", { 1: "one" });
    expect(await stand.lifecycle.start()).toEqual([]);
    stand.directory.model("b", { 1: "one" });
    await eventually(() => expect(stand.answer("b")).toBe("1: one"));
    stand.directory.write("b/1/model.onnx", "changed");
    await eventually(() => expect(stand.answer("b")).toBe("1: changed"));
    stand.directory.remove("b");
    await eventually(() => expect(stand.answer("b")).toContain("'b' is not found"));
    expect(await stand.index("b")).toEqual([]);
    expect(stand.versions.started.filter(({ model }) => model.name === "a")).toHaveLength(1);
    await expect(stand.lifecycle.load("a", {})).rejects.toMatchObject(notAllowed);
  });

  it("tries a model that failed again when its files change, and not before", async () => {
    stand = new LifecycleStand({ mode: "poll" });
    stand.directory.model("m", { 1: "broken half" });
    expect(await stand.lifecycle.start()).toHaveLength(1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(stand.versions.attempts).toBe(1);
    stand.directory.write("m/1/model.onnx", "whole");
    await eventually(() => expect(stand.answer("m")).toBe("1: whole"));
    expect(stand.lifecycle.ready()).toBe(true);
  });

  it("loads a model again that was still being written while it was loaded", async () => {
    stand = new LifecycleStand({ mode: "poll" });
    await stand.lifecycle.start();
    const gate = Promise.withResolvers<void>();
    stand.versions.loading = gate.promise;
    stand.directory.model("m", { 1: "half" });
    await eventually(() => expect(stand.versions.attempts).toBe(1));
    stand.directory.write("m/1/model.onnx", "half and half");
    gate.resolve();
    await eventually(() => expect(stand.answer("m")).toBe("1: half and half"));
  });

  it("serves on when the repository cannot be reached", async () => {
    stand = new LifecycleStand({ mode: "poll" });
    stand.directory.model("m", { 1: "one" });
    await stand.lifecycle.start();
    stand.directory.remove();
    await eventually(() => expect(stand.log.errors).not.toEqual([]));
    expect(stand.answer("m")).toBe("1: one");
  });

  it("does not wait for one slow model to follow another", async () => {
    stand = new LifecycleStand({ mode: "poll" });
    await stand.lifecycle.start();
    const gate = Promise.withResolvers<void>();
    stand.versions.loading = gate.promise;
    stand.directory.model("slow", { 1: "one" });
    await eventually(() => expect(stand.versions.attempts).toBe(1));
    stand.versions.loading = undefined;
    stand.directory.model("quick", { 1: "one" });
    await eventually(() => expect(stand.answer("quick")).toBe("1: one"));
    expect(stand.answer("slow")).toContain("has no available versions");
    gate.resolve();
  });
});

describe("ModelLifecycle closing", () => {
  it("waits for what runs, frees everything, and loads nothing more", async () => {
    stand = new LifecycleStand({ loadModels: ["*"], loadThreadCount: 1 });
    stand.directory.model("a", { 1: "one" });
    const requests = Promise.withResolvers<void>();
    stand.versions.inflight = requests.promise;
    await stand.lifecycle.start();
    let closed = false;
    const closing = stand.lifecycle.close().then(() => (closed = true));
    await expect(stand.lifecycle.load("a", {})).rejects.toThrow("the server is shutting down");
    expect(stand.answer("a")).toContain("the server is shutting down");
    expect(closed).toBe(false);
    requests.resolve();
    await closing;
    expect(stand.last().closed).toBe(true);
  });

  it("ends a version that was still loading, and starts none that waited for a slot", async () => {
    stand = new LifecycleStand({ loadThreadCount: 1 });
    stand.directory.model("a", { 1: "one" });
    stand.directory.model("b", { 1: "one" });
    const gate = Promise.withResolvers<void>();
    stand.versions.loading = gate.promise;
    const loads = ["a", "b"].map((name) => stand.lifecycle.load(name, {}));
    await eventually(() => expect(stand.versions.attempts).toBe(1));
    const closing = stand.lifecycle.close();
    gate.resolve();
    const results = await Promise.allSettled(loads);
    await closing;
    expect(results.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    expect(stand.versions.started.map(({ closed }) => closed)).toEqual([true]);
  });
});
