import { spawn, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { GraphFinding } from "./graph-finding.ts";
import { isProbeReport, type ProbeOrder, type ProbeReport } from "./probe-report.ts";

export interface ApartLimits {
  /** How much memory opening the file may take. */
  readonly memoryLimitBytes: number;
  readonly timeLimitMilliseconds: number;
}

const probeProcess = fileURLToPath(new URL("./probe-process.ts", import.meta.url));
const kilobyte = 1024;
/** What Node counts against the limit before it has opened anything: mostly code space of V8 that is never touched. */
const nodeBytes = 640 * 2 ** 20;

/** Opens a model file in a process of its own, with bounded memory and time. Rejects with the reason that it does not open. */
export async function openApart(order: ProbeOrder, limits: ApartLimits): Promise<GraphFinding> {
  const child = startProcess(limits.memoryLimitBytes);
  let late = false;
  const deadline = setTimeout(() => {
    late = true;
    child.kill("SIGKILL");
  }, limits.timeLimitMilliseconds);
  try {
    const report = await reportOf(child, order);
    if (report.opened) return report.finding;
    throw new InferenceError(report.code, report.message);
  } catch (cause) {
    if (cause instanceof InferenceError) throw cause;
    const problem = late
      ? `took longer than ${limits.timeLimitMilliseconds} ms`
      : `crashed, or took more memory than ${limits.memoryLimitBytes} bytes`;
    const text = `failed to load model '${order.settings.modelName}': opening its file ${problem}`;
    throw new InferenceError(StatusCode.Internal, text, { cause });
  } finally {
    clearTimeout(deadline);
    child.kill("SIGKILL");
  }
}

/**
 * The limit is on data (`ulimit -d`: heap and private mappings that can be written), because Node reserves tens of
 * gigabytes of address space that it never uses. Of this process's environment the child gets only what starts Node fast.
 */
function startProcess(memoryLimitBytes: number): ChildProcess {
  const limit = `ulimit -d ${Math.floor((nodeBytes + memoryLimitBytes) / kilobyte)} && exec "$0" "$@"`;
  return spawn("/bin/sh", ["-c", limit, process.execPath, probeProcess], {
    env: {
      PATH: process.env["PATH"],
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
    },
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
}

function reportOf(child: ChildProcess, order: ProbeOrder): Promise<ProbeReport> {
  return new Promise((resolve, reject) => {
    child.once("message", (message) => {
      if (isProbeReport(message)) resolve(message);
      else reject(new Error("the report of the process is not one"));
    });
    child.once("error", reject);
    child.once("exit", (code, signal) => reject(new Error(`ended with ${signal ?? code}`)));
    child.send(order, (error) => {
      if (error) reject(error);
    });
  });
}
