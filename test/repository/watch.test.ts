import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LocalStore } from "../../repository/local-store.ts";
import { ModelRepository } from "../../repository/model-repository.ts";
import { type RepositoryChanges, RepositoryWatch } from "../../repository/watch.ts";
import { eventually } from "../helpers/eventually.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";

let directory: ModelDirectory;
let repository: ModelRepository;
let watch: RepositoryWatch;
beforeEach(() => {
  directory = new ModelDirectory();
  repository = new ModelRepository([new LocalStore(directory.path)]);
  watch = new RepositoryWatch(repository);
});
afterEach(() => {
  watch.stop();
  directory.remove();
});

describe("RepositoryWatch", () => {
  it("tells what is new, changed and gone since the last look", async () => {
    directory.model("a", { 1: "one" });
    directory.model("b", { 1: "one" });
    expect(await watch.poll()).toEqual({ changed: ["a", "b"], removed: [] });
    expect(await watch.poll()).toEqual({ changed: [], removed: [] });
    directory.write("a/1/model.onnx", "another one");
    directory.remove("b");
    directory.model("c", { 1: "one" });
    const { changed, removed } = await watch.poll();
    expect(changed.toSorted()).toEqual(["a", "c"]);
    expect(removed).toEqual(["b"]);
  });

  it("takes nothing for removed while the repository cannot be read", async () => {
    directory.model("a", { 1: "one" });
    await watch.poll();
    directory.remove();
    await expect(watch.poll()).rejects.toThrow("cannot be read");
    directory.write("a/config.pbtxt", "");
    expect((await watch.poll()).removed).toEqual([]);
  });

  it("looks again and again, past errors, until it is stopped", async () => {
    const seen: RepositoryChanges[] = [];
    const onError = vi.fn<(error: unknown) => void>();
    watch.start(5, { onChanges: (changes) => void seen.push(changes), onError });
    directory.model("a", { 1: "one" });
    await eventually(() => expect(seen.length).toBeGreaterThan(0));
    directory.remove();
    await eventually(() => expect(onError).toHaveBeenCalled());
    directory.model("b", { 1: "one" });
    await eventually(() => expect(seen.at(-1)).toEqual({ changed: ["b"], removed: ["a"] }));
    watch.stop();
    const { length } = seen;
    directory.model("c", { 1: "one" });
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(seen).toHaveLength(length);
  });

  it("looks at once when the repository is told of a change, also when that is during a look", async () => {
    const seen: string[] = [];
    const onChanges = ({ changed }: RepositoryChanges): void => {
      seen.push(...changed);
      if (changed.includes("c")) return;
      directory.model("c", { 1: "one" });
      repository.tellChanged();
    };
    watch.start(1_000_000, { onChanges, onError: () => {} });
    directory.model("a", { 1: "one" });
    directory.model("b", { 1: "one" });
    repository.tellChanged();
    await eventually(() => expect(seen).toEqual(["a", "b", "c"]));
  });

  it("does not look when the repository is told of a change after it was stopped", async () => {
    const poll = vi.spyOn(watch, "poll");
    watch.start(1_000_000, { onChanges: () => {}, onError: () => {} });
    watch.stop();
    repository.tellChanged();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(poll).not.toHaveBeenCalled();
  });

  it("does not look again when it is stopped during a look", async () => {
    const poll = vi.spyOn(watch, "poll");
    directory.model("a", { 1: "one" });
    watch.start(1, { onChanges: () => watch.stop(), onError: () => {} });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(poll).toHaveBeenCalledTimes(1);
  });
});
