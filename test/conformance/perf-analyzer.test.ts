import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startWithModels, type RunningServer } from "./servers.ts";

const root = path.join(import.meta.dirname, "../..");
const json = ["--input-tensor-format", "json", "--output-tensor-format", "json"];

describe("tidepool serve, asked by perf_analyzer", () => {
  let server: RunningServer | undefined;

  beforeAll(async () => {
    server = await startWithModels("serve", "fixed", "word");
  }, 90_000);

  afterAll(async () => {
    await server?.stop();
  });

  const ways = [
    { way: "HTTP", protocol: "http", model: "fixed", flags: [] },
    { way: "HTTP, asynchronous", protocol: "http", model: "fixed", flags: ["--async"] },
    { way: "HTTP, JSON tensors", protocol: "http", model: "fixed", flags: json },
    { way: "gRPC", protocol: "grpc", model: "fixed", flags: [] },
    { way: "gRPC, asynchronous", protocol: "grpc", model: "fixed", flags: ["--async"] },
    { way: "gRPC, a stream", protocol: "grpc", model: "fixed", flags: ["--async", "--streaming"] },
    { way: "gRPC, strings", protocol: "grpc", model: "word", flags: ["--string-length", "16"] },
  ] as const;

  // At the same time: each mostly waits for its own start and for its windows.
  it.concurrent.each(ways)(
    "serves $model over $protocol $flags",
    async ({ protocol, model, flags }) => {
      const url = protocol === "http" ? server?.http : server?.grpc;
      const load = ["-m", model, "-i", protocol, "-u", url ?? "", "--concurrency-range", "4"];
      // One short count window: this asks whether it works, not how fast.
      const window = ["--measurement-mode", "count_windows", "--measurement-request-count", "50"];
      const unhurried = ["--stability-percentage", "999", "--max-trials", "3"];
      const said = await perfAnalyzer([...load, ...window, ...unhurried, ...flags]);
      expect(Number(/throughput: ([\d.]+) infer\/sec/u.exec(said)?.[1])).toBeGreaterThan(0);
      expect(said).not.toMatch(/Failed requests?: [1-9]/iu);
    },
    60_000,
  );
});

async function perfAnalyzer(parameters: readonly string[]): Promise<string> {
  const script = path.join(root, "bench/peer/perf-analyzer.sh");
  const { stdout } = await promisify(execFile)(script, parameters, { timeout: 50_000 });
  return stdout;
}
