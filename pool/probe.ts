import { spawn, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import { checkBackend } from "./backend/backends.ts";
import type { InstanceSettings } from "./backend/backend.ts";
import { onnxFile } from "./backend/model-file.ts";
import { cpu } from "./devices.ts";
import { modelDigest } from "./model-digest.ts";
import { FindingStore } from "./finding-store.ts";
import type { GraphFinding } from "./graph-finding.ts";
import { probeReport, type ProbeReport } from "./probe-report.ts";
import type { VersionSource } from "./running-version.ts";

export interface ProbeOptions {
  /** Where findings are kept. */
  readonly cacheDirectory: string;
  /** How much memory opening the file may take. */
  readonly memoryLimitBytes: number;
  readonly timeLimitMilliseconds: number;
}

const probeProcess = fileURLToPath(new URL("./probe-process.ts", import.meta.url));
const kilobyte = 1024;
/** What Node counts against the limit before it has opened anything: mostly code space of V8 that is never touched. */
const nodeBytes = 640 * 2 ** 20;

/**
 * Opens a model file that was never seen in a process of its own, with bounded memory and time, and says what is in it;
 * a file that was seen before costs its hash only. Rejects with the reason that the file cannot be opened.
 */
export async function probeVersion(
  source: VersionSource,
  options: ProbeOptions,
): Promise<GraphFinding> {
  checkBackend(source.config);
  const store = new FindingStore(options.cacheDirectory);
  const digest = await modelDigest(onnxFile(source.config, source.versionDirectory));
  const known = await store.get(digest);
  if (known) return known;
  const finding = await openApart(source, options);
  await store.put(digest, finding);
  return finding;
}

async function openApart(source: VersionSource, options: ProbeOptions): Promise<GraphFinding> {
  const child = startProcess(options.memoryLimitBytes);
  const settings: InstanceSettings = {
    modelName: source.name,
    config: source.config,
    versionDirectory: source.versionDirectory,
    device: cpu,
    cores: 1,
  };
  const deadline = setTimeout(() => child.kill("SIGKILL"), options.timeLimitMilliseconds);
  const started = performance.now();
  try {
    const report = await reportOf(child, settings);
    if (report.opened) return report.finding;
    throw new InferenceError(report.code, report.message);
  } catch (cause) {
    if (cause instanceof InferenceError) throw cause;
    const late = performance.now() - started >= options.timeLimitMilliseconds;
    const problem = late
      ? `took longer than ${options.timeLimitMilliseconds} ms`
      : `crashed, or took more memory than ${options.memoryLimitBytes} bytes`;
    const text = `failed to load model '${source.name}': opening its file ${problem}`;
    throw new InferenceError(StatusCode.Internal, text, { cause });
  } finally {
    clearTimeout(deadline);
    child.kill("SIGKILL");
  }
}

/**
 * The limit is on data (`ulimit -d`: heap and private mappings that can be written), because Node reserves tens of
 * gigabytes of address space that it never uses. The child gets none of this process's environment.
 */
function startProcess(memoryLimitBytes: number): ChildProcess {
  const limit = `ulimit -d ${Math.floor((nodeBytes + memoryLimitBytes) / kilobyte)} && exec "$0" "$@"`;
  return spawn("/bin/sh", ["-c", limit, process.execPath, probeProcess], {
    env: { PATH: process.env["PATH"] ?? "" },
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
}

function reportOf(child: ChildProcess, settings: InstanceSettings): Promise<ProbeReport> {
  return new Promise((resolve, reject) => {
    child.once("message", (message) => {
      const report = probeReport.safeParse(message);
      if (report.success) resolve(report.data);
      else reject(report.error);
    });
    child.once("error", reject);
    child.once("exit", (code, signal) => reject(new Error(`ended with ${signal ?? code}`)));
    child.send(settings, (error) => {
      if (error) reject(error);
    });
  });
}
