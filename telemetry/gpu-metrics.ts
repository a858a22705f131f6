import { execFile } from "node:child_process";
import type { MetricFamily } from "./metric-family.ts";

/** One line of what nvidia-smi was asked for, in its units: percent, MiB, W. */
interface GpuSample {
  readonly uuid: string;
  readonly values: readonly number[];
}

interface GpuGauge {
  readonly query: string;
  readonly name: string;
  readonly help: string;
  /** From nvidia-smi's unit to the metric's. */
  readonly factor: number;
}

const mebibyte = 1024 * 1024;
const timeoutMilliseconds = 5000;

const gauges: readonly GpuGauge[] = [
  {
    query: "utilization.gpu",
    name: "nv_gpu_utilization",
    help: "GPU utilization rate [0.0 - 1.0)",
    factor: 0.01,
  },
  {
    query: "memory.total",
    name: "nv_gpu_memory_total_bytes",
    help: "GPU total memory, in bytes",
    factor: mebibyte,
  },
  {
    query: "memory.used",
    name: "nv_gpu_memory_used_bytes",
    help: "GPU used memory, in bytes",
    factor: mebibyte,
  },
  { query: "power.draw", name: "nv_gpu_power_usage", help: "GPU power usage in watts", factor: 1 },
  {
    query: "power.limit",
    name: "nv_gpu_power_limit",
    help: "GPU power management limit in watts",
    factor: 1,
  },
];

/** Asks nvidia-smi how the GPUs fare; on a machine without it, it asks once and has no metrics. */
export class GpuMetrics {
  readonly #program: string;
  readonly #intervalMilliseconds: number;
  #timer: NodeJS.Timeout | undefined;
  #samples: readonly GpuSample[] = [];
  #closed = false;

  /** Starts asking. The program is an argument for the tests' sake. */
  constructor(intervalMilliseconds: number, program = "nvidia-smi") {
    this.#intervalMilliseconds = intervalMilliseconds;
    this.#program = program;
    this.#ask();
  }

  families(): readonly MetricFamily[] {
    return gauges.map(({ name, help, factor }, at) => ({
      name,
      help,
      type: "gauge",
      samples: this.#samples.flatMap(({ uuid, values }) => {
        const value = values[at] ?? Number.NaN;
        // nvidia-smi says [N/A] for what a device cannot tell.
        return Number.isNaN(value) ? [] : [{ labels: { gpu_uuid: uuid }, value: value * factor }];
      }),
    }));
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #ask(): void {
    const query = ["uuid", ...gauges.map((gauge) => gauge.query)].join(",");
    const args = [`--query-gpu=${query}`, "--format=csv,noheader,nounits"];
    execFile(this.#program, args, { timeout: timeoutMilliseconds }, (error, stdout) => {
      const missing = error !== null && error.code === "ENOENT";
      this.#samples = error === null ? parseGpuSamples(stdout) : [];
      if (missing || this.#closed) return;
      // Asked again only after it answered, so that a slow driver is not asked many times at once.
      this.#timer = setTimeout(() => this.#ask(), this.#intervalMilliseconds);
      this.#timer.unref();
    });
  }
}

function parseGpuSamples(csv: string): readonly GpuSample[] {
  return csv
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const [uuid = "", ...values] = line.split(",").map((field) => field.trim());
      return { uuid, values: values.map(Number) };
    });
}
