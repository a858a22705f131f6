import { describe, expect, it } from "vitest";
import type { TraceScope } from "../../telemetry/trace-scope.ts";
import { TraceSettings } from "../../telemetry/trace-settings.ts";
import { traceOff, type TraceSettingValues } from "../../telemetry/trace-values.ts";

const defaults: TraceSettingValues = { level: traceOff, rate: 1000, count: -1, logFrequency: 0 };
const timestamps = { timestamps: true, tensors: false };

function settingsWith(values: Partial<TraceSettingValues> = {}, hasPlace = true) {
  const replaced: TraceScope[] = [];
  const settings = new TraceSettings({
    defaults: { ...defaults, ...values },
    hasPlace,
    onReplaced: (scope) => replaced.push(scope),
  });
  return { settings, replaced };
}

/** Which of so many requests are traced, counted from 1. */
function taken(scope: TraceScope, requests: number): number[] {
  return Array.from({ length: requests }, (_, i) => i + 1).filter(() => scope.take());
}

describe("TraceScope", () => {
  it("traces every n-th request until the count is used up", () => {
    const { settings } = settingsWith({ level: timestamps, rate: 3, count: 2 });
    const scope = settings.scope("m");
    expect(taken(scope, 12)).toEqual([3, 6]);
    expect(scope.exhausted).toBe(true);
    expect(scope.values.count).toBe(0);
  });

  it("traces without end when the count is -1, and nothing when the rate is 0 or the level is off", () => {
    expect(taken(settingsWith({ level: timestamps, rate: 1 }).settings.scope("m"), 4)).toEqual([
      1, 2, 3, 4,
    ]);
    expect(taken(settingsWith({ level: timestamps, rate: 0 }).settings.scope("m"), 4)).toEqual([]);
    expect(taken(settingsWith({ rate: 1 }).settings.scope("m"), 4)).toEqual([]);
  });
});

describe("TraceSettings", () => {
  it("gives a model what is set for all until it has something of its own", () => {
    const { settings } = settingsWith();
    settings.update("m", { rate: 9 });
    settings.update("", { rate: 12, count: 33 });
    expect(settings.scope("m").values).toEqual({ ...defaults, rate: 9, count: 33 });
    expect(settings.scope("other").values).toEqual({ ...defaults, rate: 12, count: 33 });
  });

  it("falls back to what is set for all, and from there to the start, when a setting is taken back", () => {
    const { settings } = settingsWith();
    settings.update("", { rate: 12 });
    settings.update("m", { rate: 9, logFrequency: 5 });
    settings.update("m", { rate: null });
    expect(settings.scope("m").values).toEqual({ ...defaults, rate: 12, logFrequency: 5 });
    settings.update("", { rate: null });
    expect(settings.scope("m").values).toEqual({ ...defaults, logFrequency: 5 });
    settings.update("m", { logFrequency: null });
    expect(settings.scope("m")).toBe(settings.scope("other"));
  });

  it("counts the requests of models without settings of their own together, and of others apart", () => {
    const { settings } = settingsWith({ level: timestamps, rate: 2 });
    settings.update("own", { rate: 3 });
    const traced = ["a", "b", "own", "a", "own", "b", "own"].filter((model) =>
      settings.scope(model).take(),
    );
    expect(traced).toEqual(["b", "b", "own"]);
  });

  it("keeps what is left of a count when another setting changes", () => {
    const { settings } = settingsWith();
    settings.update("", { level: timestamps, rate: 1, count: 5 });
    taken(settings.scope("m"), 2);
    settings.update("", { rate: 2 });
    expect(settings.scope("m").values.count).toBe(3);
  });

  it("tells which counts of requests have ended", () => {
    const { settings, replaced } = settingsWith();
    const first = settings.scope("m");
    settings.update("m", { rate: 2 });
    const own = settings.scope("m");
    settings.update("", { rate: 3 });
    settings.close();
    expect(replaced).toEqual([first, own, settings.scope("other"), settings.scope("m")]);
  });

  it("refuses a level without a rate or without a place, and changes nothing", () => {
    const { settings } = settingsWith({ rate: 7 });
    expect(() => settings.update("", { level: timestamps, rate: 0 })).toThrow(
      "Attempting to set invalid trace setting :sample rate must be non-zero",
    );
    expect(settings.scope("m").values).toEqual({ ...defaults, rate: 7 });
    const { settings: nowhere } = settingsWith({}, false);
    expect(() => nowhere.update("m", { level: timestamps })).toThrow(
      "Attempting to set invalid trace setting :trace file name is not given",
    );
    expect(nowhere.on).toBe(false);
  });

  it("refuses a rate of 0 for all when a model is traced by that rate", () => {
    const { settings } = settingsWith();
    settings.update("m", { level: timestamps });
    expect(() => settings.update("", { rate: 0 })).toThrow("sample rate must be non-zero");
    expect(settings.scope("m").values.rate).toBe(1000);
  });

  it("is on when requests of any model could be traced", () => {
    const { settings } = settingsWith();
    expect(settings.on).toBe(false);
    settings.update("m", { level: timestamps });
    expect(settings.on).toBe(true);
    settings.update("m", { level: null });
    expect(settings.on).toBe(false);
  });
});
