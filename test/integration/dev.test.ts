import { readFileSync } from "node:fs";
import { expect, it, vi } from "vitest";
import { addingModel } from "../helpers/adding-model.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { startRedis } from "../helpers/redis-server.ts";
import { startTidepool } from "../helpers/tidepool-process.ts";

it("keeps the URL of Redis, which may hold a password, out of the list of processes", async () => {
  const models = new ModelDirectory();
  models.model("seven", { 1: addingModel(7) });
  const redis = await startRedis();
  vi.stubEnv("TIDEPOOL_REDIS_URL", redis.url);
  try {
    const args = [`--model-repository=${models.path}`, "--pool-min-workers=1"];
    const server = await startTidepool(args, "dev");
    try {
      const lines = commandLinesBelow(server.process.pid);
      expect(lines.join("\n")).toMatch(/main\.ts\0autoscaler(?:.|\n)*main\.ts\0pool/u);
      expect(lines.filter((line) => line.includes(redis.url))).toEqual([]);
    } finally {
      await server.stop();
    }
  } finally {
    vi.unstubAllEnvs();
    await redis.stop();
    models.remove();
  }
}, 60_000);

/** Of all processes that a process has started, and of those that these have. */
function commandLinesBelow(id: number | string | undefined): readonly string[] {
  const children = readFileSync(`/proc/${id}/task/${id}/children`, "utf8").trim();
  return children
    .split(" ")
    .filter((child) => child !== "")
    .flatMap((child) => [
      readFileSync(`/proc/${child}/cmdline`, "utf8"),
      ...commandLinesBelow(child),
    ]);
}
