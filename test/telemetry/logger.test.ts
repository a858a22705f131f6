import { describe, expect, it } from "vitest";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { LogSettingValues } from "../../telemetry/log-settings.ts";
import { ServerLog } from "../../telemetry/logger.ts";

const values: LogSettingValues = {
  logFile: "",
  logInfo: true,
  logWarning: true,
  logError: true,
  logVerboseLevel: 0,
  logFormat: "default",
};

function logTo(lines: Map<string, unknown[]>, changes: Partial<LogSettingValues> = {}): ServerLog {
  return new ServerLog({ ...values, ...changes }, (logFile) => {
    const written: unknown[] = [];
    lines.set(logFile, written);
    return { write: (line) => written.push(JSON.parse(line)) };
  });
}

function linesOf(changes: Partial<LogSettingValues>, use: (log: ServerLog) => void): unknown[] {
  const lines = new Map<string, unknown[]>();
  use(logTo(lines, changes));
  return lines.get("") ?? [];
}

function sayAll(log: ServerLog): void {
  log.error("an error");
  log.warn("a warning");
  log.info("an event");
  log.verbose(1, "a request");
  log.verbose(2, "a step");
}

describe("ServerLog", () => {
  it("writes one JSON object a line, with its fields and the error behind it", () => {
    const cause = new Error("disk is gone");
    const [line] = linesOf({}, (log) =>
      log.error("model failed", { requestId: "abc", model: "m", err: cause }),
    );
    expect(line).toMatchObject({
      level: "error",
      msg: "model failed",
      requestId: "abc",
      model: "m",
      err: { type: "Error", message: "disk is gone" },
    });
  });

  it("writes no stack of an error of ours, and that of the cause behind it", () => {
    const cause = new Error("disk is gone");
    const [expected, unexpected] = linesOf({}, (log) => {
      log.error("load failed", { err: new InferenceError(StatusCode.InvalidArg, "no such op") });
      log.error("oops", { err: new InferenceError(StatusCode.Internal, "oops", { cause }) });
    });
    expect(expected).toMatchObject({
      err: { type: "InferenceError", code: "INVALID_ARG", message: "no such op" },
    });
    expect(expected).not.toHaveProperty("err.stack");
    expect(unexpected).toMatchObject({ err: { cause: { stack: cause.stack } } });
  });

  it.each<[Partial<LogSettingValues>, string[]]>([
    [{}, ["an error", "a warning", "an event"]],
    [{ logInfo: false }, ["an error", "a warning"]],
    [{ logWarning: false }, ["an error", "an event"]],
    [{ logError: false, logInfo: false }, ["a warning"]],
    [{ logVerboseLevel: 1 }, ["an error", "a warning", "an event", "a request"]],
    [{ logVerboseLevel: 2 }, ["an error", "a warning", "an event", "a request", "a step"]],
  ])("writes with %j what it should", (changes, messages) => {
    const lines = linesOf(changes, sayAll);
    expect(lines).toEqual(messages.map((msg) => expect.objectContaining({ msg })));
  });

  it("spells the time as log_format says", () => {
    const [plain] = linesOf({}, (log) => log.info("now"));
    const [iso] = linesOf({ logFormat: "ISO8601" }, (log) => log.info("now"));
    expect(plain).toMatchObject({ time: expect.any(Number) });
    expect(iso).toMatchObject({ time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/u) });
  });

  it("takes changes from the next line on", () => {
    const lines = new Map<string, unknown[]>();
    const log = logTo(lines);
    log.update({ logInfo: false, logVerboseLevel: 3 });
    log.info("unheard");
    log.verbose(3, "heard");
    expect(lines.get("")).toEqual([expect.objectContaining({ msg: "heard" })]);
    expect(log.get()).toEqual({ ...values, logInfo: false, logVerboseLevel: 3 });
    expect(log.verboseLevel).toBe(3);
  });

  it("goes on in another file when told so", () => {
    const lines = new Map<string, unknown[]>();
    const log = logTo(lines);
    log.info("first");
    log.update({ logFile: "other.log" });
    log.info("second");
    expect(lines.get("")).toEqual([expect.objectContaining({ msg: "first" })]);
    expect(lines.get("other.log")).toEqual([expect.objectContaining({ msg: "second" })]);
  });
});
