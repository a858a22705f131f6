import { describe, expect, it } from "vitest";
import { ResidentVersions } from "../../pool/resident-versions.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { CountedVersion } from "../../serving/running-version.ts";
import { turn } from "../helpers/fake-clock.ts";
import { HandHeldInstances } from "../helpers/hand-held-instances.ts";
import { countedVersion, send } from "../helpers/queue-stand.ts";

/** Versions named by what they take of a budget of 100, as in "a:40"; starts and executions are in the test's hands. */
class Stand {
  readonly began: string[] = [];
  readonly closed: string[] = [];
  readonly instances = new Map<string, HandHeldInstances>();
  /** Starts wait for it. */
  gate: Promise<void> = Promise.resolve();
  readonly residents = new ResidentVersions({
    budgetBytes: 100,
    find: async (key) => ({
      bytes: Number(key.split(":")[1]),
      start: async () => {
        this.began.push(key);
        await this.gate;
        if (key.startsWith("broken")) throw new InferenceError(StatusCode.Internal, key);
        return this.#version(key);
      },
    }),
  });

  get loaded(): string[] {
    return [...this.residents.loaded().keys()];
  }

  #version(key: string): CountedVersion {
    const instances = new HandHeldInstances();
    this.instances.set(key, instances);
    const version = countedVersion(key, instances);
    const close = async (): Promise<void> => {
      await version.close();
      this.closed.push(key);
    };
    return { ...version, close };
  }
}

describe("ResidentVersions", () => {
  it("starts a version when it is first asked for, once for all who ask", async () => {
    const stand = new Stand();
    const [one, two] = await Promise.all([stand.residents.get("a:1"), stand.residents.get("a:1")]);
    expect(one).toBe(two);
    expect(await stand.residents.get("a:1")).toBe(one);
    expect(stand.began).toEqual(["a:1"]);
    expect(stand.loaded).toEqual(["a:1"]);
  });

  it("shares a failure among those who asked, and does not keep it", async () => {
    const stand = new Stand();
    const asked = [stand.residents.get("broken:1"), stand.residents.get("broken:1")];
    const results = await Promise.allSettled(asked);
    expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(stand.began).toHaveLength(1);
    expect(stand.residents.bytes).toBe(0);
    await expect(stand.residents.get("broken:1")).rejects.toThrow("broken");
    expect(stand.began).toHaveLength(2);
  });

  it("makes room by closing those that were used longest ago", async () => {
    const stand = new Stand();
    for (const key of ["a:40", "b:40", "c:20"]) await stand.residents.get(key);
    await stand.residents.get("a:40");
    await stand.residents.get("d:30");
    expect(stand.closed).toEqual(["b:40"]);
    expect(stand.loaded.toSorted()).toEqual(["a:40", "c:20", "d:30"]);
    expect(stand.residents.bytes).toBe(90);
  });

  it("lets one version take more than the budget, alone", async () => {
    const stand = new Stand();
    await stand.residents.get("a:40");
    await stand.residents.get("huge:400");
    expect(stand.loaded).toEqual(["huge:400"]);
    await stand.residents.get("a:40");
    expect(stand.loaded).toEqual(["a:40"]);
  });

  it("keeps to the budget when two start at the same time", async () => {
    const stand = new Stand();
    await Promise.all([stand.residents.get("a:60"), stand.residents.get("b:60")]);
    await turn();
    expect(stand.loaded).toHaveLength(1);
    expect(stand.residents.bytes).toBe(60);
  });

  it("has a version answer what it has before it closes, and begins the next only then", async () => {
    const stand = new Stand();
    const sent = send(await stand.residents.get("a:60"));
    await turn();
    const next = stand.residents.get("b:60");
    await turn();
    await turn();
    expect(stand.closed).toEqual([]);
    expect(stand.began).toEqual(["a:60"]);
    stand.instances.get("a:60")?.executions[0]?.finish();
    await next;
    expect(sent.sink.responses).toHaveLength(1);
    expect(stand.closed).toEqual(["a:60"]);
  });

  it("has a version answer those who were given it in the turn in which it goes", async () => {
    const stand = new Stand();
    await stand.residents.get("a:60");
    const given = stand.residents.get("a:60");
    stand.residents.retire("a:60");
    const sent = send(await given);
    await turn();
    stand.instances.get("a:60")?.executions[0]?.finish();
    await turn();
    expect(sent.sink.error).toBeUndefined();
    expect(sent.sink.responses).toHaveLength(1);
    expect(stand.closed).toEqual(["a:60"]);
  });

  it("lets a retired version go, and starts it anew for who asks again", async () => {
    const stand = new Stand();
    await stand.residents.get("a:60");
    stand.residents.retire("a:60");
    expect(stand.loaded).toEqual([]);
    await stand.residents.get("a:60");
    await turn();
    expect(stand.began).toEqual(["a:60", "a:60"]);
    expect(stand.loaded).toEqual(["a:60"]);
    expect(stand.closed).toEqual(["a:60"]);
  });

  it("lets a version go that was retired while it started, after those who waited for it", async () => {
    const stand = new Stand();
    const gate = Promise.withResolvers<void>();
    stand.gate = gate.promise;
    const starting = stand.residents.get("a:60");
    await turn();
    stand.residents.retire("a:60");
    gate.resolve();
    const sent = send(await starting);
    expect(stand.loaded).toEqual([]);
    await turn();
    stand.instances.get("a:60")?.executions[0]?.finish();
    await turn();
    expect(sent.sink.responses).toHaveLength(1);
    expect(stand.closed).toEqual(["a:60"]);
  });

  it("keeps a version that is asked for again after it was retired while it started", async () => {
    const stand = new Stand();
    const gate = Promise.withResolvers<void>();
    stand.gate = gate.promise;
    const first = stand.residents.get("a:60");
    await turn();
    stand.residents.retire("a:60");
    const second = stand.residents.get("a:60");
    gate.resolve();
    expect(await first).toBe(await second);
    await turn();
    expect(stand.loaded).toEqual(["a:60"]);
  });

  it("closes all that it has", async () => {
    const stand = new Stand();
    await stand.residents.get("a:40");
    await stand.residents.get("b:40");
    await stand.residents.close();
    expect(stand.closed.toSorted()).toEqual(["a:40", "b:40"]);
    expect(stand.loaded).toEqual([]);
  });
});
