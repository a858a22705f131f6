import { describe, expect, it } from "vitest";
import { MemoryTier } from "../../../cache/memory-tier.ts";
import { ResponseCache, type SharedTier } from "../../../cache/response-cache.ts";
import { anonymous, Call } from "../../../protocol/call.ts";
import type { ModelConfig } from "../../../protocol/model-config.ts";
import { ResponseCaching } from "../../../serving/caching/response-caching.ts";
import { systemClock } from "../../../serving/clock.ts";
import type { RunningVersion, VersionSource } from "../../../serving/running-version.ts";
import { turn } from "../../helpers/fake-clock.ts";
import { HandHeldInstances } from "../../helpers/hand-held-instances.ts";
import { InstantInstances } from "../../helpers/instant-instances.ts";
import { KeptAnswers, requestFor, responseTo } from "../../helpers/requests.ts";
import { runningVersion } from "../../helpers/running-models.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";

interface Given {
  readonly fingerprint?: string;
  readonly config?: Partial<ModelConfig>;
  readonly members?: readonly RunningVersion[];
  readonly digest?: () => Promise<string>;
}

const noTier: SharedTier = { get: async () => undefined, set: () => {}, flush: async () => {} };

function noFiles(): Promise<never> {
  return Promise.reject(new Error("nobody needs the files"));
}

function contents(text: string): Given {
  return { digest: () => Promise.resolve(text) };
}

/** A cache, and how often each version behind it has run a request. */
class Stand {
  runs = 0;
  readonly caching: ResponseCaching;

  constructor(redis?: SharedTier) {
    const memory = new MemoryTier({ maxBytes: 1_000_000 });
    this.caching = new ResponseCaching(new ResponseCache({ memory, redis }), systemClock);
  }

  async load(name: string, given: Given = {}): Promise<RunningVersion> {
    const { fingerprint = "files", config = {}, members, digest } = given;
    const running = runningVersion(
      servedModel(name, {
        maxBatchSize: 8,
        input: [modelInput("IN", "TYPE_FP32", [4])],
        output: [modelOutput("OUT", "TYPE_FP32", [4])],
        responseCache: { enable: true },
        ...config,
      }),
      new InstantInstances((request) => {
        this.runs++;
        return responseTo(request);
      }),
    );
    const source: VersionSource = {
      name,
      version: "1",
      config: running.model.config,
      fingerprint,
      digest,
      fetch: noFiles,
    };
    return this.caching.cached(source, { ...running, ...(members && { members }) });
  }

  /** Asks the same again; true when the version had to run it. */
  async ran({ model, scheduler }: RunningVersion, principal = anonymous): Promise<boolean> {
    const before = this.runs;
    const request = requestFor(model);
    scheduler.enqueue({
      request,
      call: new Call(principal, 0),
      sink: new KeptAnswers(),
      enqueuedAt: 0,
    });
    await turn();
    return this.runs > before;
  }
}

describe("ResponseCaching", () => {
  it("answers for a version that starts again from the same files with the same config", async () => {
    const stand = new Stand();
    expect(await stand.ran(await stand.load("m"))).toBe(true);
    expect(await stand.ran(await stand.load("m"))).toBe(false);
  });

  it.each<[string, Given]>([
    ["files", { fingerprint: "others" }],
    ["config", { config: { parameters: { threads: { stringValue: "2" } } } }],
  ])("never answers a version from one with another %s", async (_, given) => {
    const stand = new Stand();
    await stand.ran(await stand.load("m"));
    expect(await stand.ran(await stand.load("m", given))).toBe(true);
  });

  it("never answers an ensemble from one with another part", async () => {
    const stand = new Stand();
    const [part, same, other] = [
      await stand.load("part"),
      await stand.load("part"),
      await stand.load("part", {
        fingerprint: "others",
        config: { responseCache: { enable: false } },
      }),
    ];
    await stand.ran(await stand.load("ensemble", { members: [part] }));
    expect(await stand.ran(await stand.load("ensemble", { members: [same] }))).toBe(false);
    const changed = await stand.load("ensemble", { members: [other] });
    expect(await stand.ran(changed)).toBe(true);
    expect(await stand.ran(await stand.load("outer", { members: [changed] }))).toBe(true);
    expect(changed.members).toEqual([other]);
  });

  it("looks into files whose answers others may find", async () => {
    const alone = new Stand();
    await alone.ran(await alone.load("m", contents("a")));
    expect(await alone.ran(await alone.load("m", contents("b")))).toBe(false);
    const shared = new Stand(noTier);
    const first = await shared.load("m", contents("a"));
    await shared.ran(first);
    expect(await shared.ran(first)).toBe(false);
    expect(await shared.ran(await shared.load("m", contents("b")))).toBe(true);
  });

  it("closes a version whose files cannot be read any more", async () => {
    const stand = new Stand(noTier);
    const broken = { digest: () => Promise.reject(new Error("gone")) };
    await expect(stand.load("m", broken)).rejects.toThrow("gone");
  });

  it("never answers one tenant with what another was answered", async () => {
    const stand = new Stand();
    const version = await stand.load("m");
    expect(await stand.ran(version, { name: "a", tenant: "one" })).toBe(true);
    expect(await stand.ran(version, { name: "b", tenant: "one" })).toBe(false);
    expect(await stand.ran(version, { name: "a", tenant: "two" })).toBe(true);
  });

  it("leaves a version alone whose config does not ask for it", async () => {
    const stand = new Stand();
    const version = await stand.load("m", { config: { responseCache: { enable: false } } });
    expect([await stand.ran(version), await stand.ran(version)]).toEqual([true, true]);
    expect(version.statistics.observe()).not.toHaveProperty("cache");
  });

  it("forgets the answers of one model when told to", async () => {
    const flushed: string[] = [];
    const stand = new Stand({ ...noTier, flush: async (model) => void flushed.push(model) });
    const [m, other] = [await stand.load("m"), await stand.load("other")];
    await stand.ran(m);
    await stand.ran(other);
    await stand.caching.flush("m");
    expect(flushed).toEqual(["m"]);
    expect(await stand.ran(other)).toBe(false);
    expect(await stand.ran(m)).toBe(true);
  });

  it("keeps no answer that was on its way when its model was flushed", async () => {
    const stand = new Stand();
    const instances = new HandHeldInstances(2);
    const running = runningVersion(
      servedModel("m", {
        input: [modelInput("IN", "TYPE_FP32", [1, 4])],
        output: [modelOutput("OUT", "TYPE_FP32", [1, 4])],
        responseCache: { enable: true },
      }),
      instances,
    );
    const source = { name: "m", version: "1", config: running.model.config, fingerprint: "f" };
    const { model, scheduler } = await stand.caching.cached({ ...source, fetch: noFiles }, running);
    const ask = (): void =>
      scheduler.enqueue({
        request: requestFor(model),
        call: new Call(anonymous, 0),
        sink: new KeptAnswers(),
        enqueuedAt: 0,
      });
    ask();
    await turn();
    await stand.caching.flush("m");
    ask();
    await turn();
    expect(instances.executions).toHaveLength(2);
    instances.executions[0]?.finish();
    await stand.caching.flush("m");
    instances.executions[1]?.finish();
    await turn();
    ask();
    await turn();
    expect(instances.executions).toHaveLength(3);
  });
});
