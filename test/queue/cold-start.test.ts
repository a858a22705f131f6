import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ColdStarts } from "../../queue/cold-start.ts";
import { PoolCounters } from "../../queue/pool-counters.ts";
import { decodeReply, encodeReply } from "../../queue/reply-frame.ts";
import { connect, type Redis } from "../../redis/connection.ts";
import { type LogFields, ServerLog } from "../../telemetry/logger.ts";
import { countField } from "../../telemetry/pool-counts.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";

const marks = { decidedAt: 110, fetchAt: 400, loadAt: 450, warmupAt: 520, readyAt: 530 };

describe("ColdStarts", () => {
  let server: RedisServer;
  let redis: Redis;
  beforeAll(async () => {
    server = await startRedis();
    redis = await connect(server.url, "commands");
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });

  it("counts and logs a start once, however many requests waited for it", async () => {
    const lines: LogFields[] = [];
    const settings = { logInfo: true, logWarning: true, logError: true, logVerboseLevel: 0 };
    const write = (line: string): void => void lines.push(JSON.parse(line));
    const log = new ServerLog({ ...settings, logFile: "", logFormat: "default" }, () => ({
      write,
    }));
    const counters = new PoolCounters("a", redis);
    const starts = new ColdStarts({ pool: "a", counters, log });
    const again = { ...marks };
    starts.answered("mlp", marks, 100);
    starts.answered("mlp", marks, 105);
    starts.answered("mlp", again, 100);
    await counters.flush();
    const counts = await counters.read();
    expect(counts.get(countField("cold_starts_total", ["mlp"]))).toBe(2);
    const spawn = countField("cold_start_duration_seconds", ["spawn", "mlp"], "sum");
    expect(counts.get(spawn)).toBeCloseTo(0.58);
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatchObject({
      msg: "cold start",
      pool: "a",
      model: "mlp",
      schedule: 10,
      spawn: 290,
      fetch: 50,
      load: 70,
      warmup: 10,
    });
  });
});

describe("a reply", () => {
  it("carries the marks of a cold start, and nothing where there was none", () => {
    const outcome = {
      modelName: "mlp",
      modelVersion: "1",
      id: "",
      outputs: [],
      parameters: new Map(),
    };
    const reply = { envelope: "e", index: 0, number: 0, final: true, outcome };
    expect(decodeReply(encodeReply({ ...reply, coldStart: marks }))).toEqual({
      ...reply,
      coldStart: marks,
    });
    expect(decodeReply(encodeReply(reply))).not.toHaveProperty("coldStart");
  });
});
