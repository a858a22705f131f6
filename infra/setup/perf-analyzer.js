import { existsSync } from "node:fs";
import path from "node:path";
import { local, root } from "./paths.js";
import { execute, step } from "./progress.js";

const script = path.join(root, "bench", "peer", "setup-perf-analyzer.sh");

/** Brings NVIDIA's load generator, which users point at their servers: here it is one more client that must work. */
export async function bringPerfAnalyzer() {
  const peer = process.env.TRITON_PEER ?? local("peer");
  const program = path.join(peer, "perf", "perf_analyzer", "bin", "perf_analyzer");
  if (!existsSync(program)) await step("bringing perf_analyzer", () => execute(script, []));
}
