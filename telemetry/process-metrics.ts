import { cpus, freemem, totalmem, type CpuInfo } from "node:os";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { single, type MetricFamily } from "./metric-family.ts";

/** Samples what the machine's processors did, so that a scrape can tell how busy they are. */
export class CpuMetrics {
  readonly #timer: NodeJS.Timeout;
  #before = ticks(cpus());
  #utilization = 0;

  constructor(intervalMilliseconds: number) {
    this.#timer = setInterval(() => this.#sample(), intervalMilliseconds);
    this.#timer.unref();
  }

  families(): readonly MetricFamily[] {
    return [
      single("gauge", "nv_cpu_utilization", "CPU utilization rate [0.0 - 1.0]", this.#utilization),
      single("gauge", "nv_cpu_memory_total_bytes", "CPU total memory (RAM), in bytes", totalmem()),
      single(
        "gauge",
        "nv_cpu_memory_used_bytes",
        "CPU used memory (RAM), in bytes",
        totalmem() - freemem(),
      ),
    ];
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #sample(): void {
    const now = ticks(cpus());
    const passed = now.total - this.#before.total;
    if (passed > 0) this.#utilization = (now.busy - this.#before.busy) / passed;
    this.#before = now;
  }
}

function ticks(infos: readonly CpuInfo[]): { busy: number; total: number } {
  let busy = 0;
  let total = 0;
  for (const { times } of infos) {
    busy += times.user + times.nice + times.sys + times.irq;
    total += times.user + times.nice + times.sys + times.irq + times.idle;
  }
  return { busy, total };
}

/** The reference keeps a pool of pinned memory and dashboards ask for it; memory here comes as it is needed. */
export function pinnedMemoryMetrics(): readonly MetricFamily[] {
  const name = "nv_pinned_memory_pool";
  return [
    single("gauge", `${name}_total_bytes`, "Pinned memory pool total memory size, in bytes", 0),
    single("gauge", `${name}_used_bytes`, "Pinned memory pool used memory size, in bytes", 0),
  ];
}

/** How this process itself fares: its memory, its processor time, and how late its event loop is. */
export class ProcessMetrics {
  readonly #delay = monitorEventLoopDelay({ resolution: 20 });

  constructor() {
    this.#delay.enable();
  }

  families(): readonly MetricFamily[] {
    const { user, system } = process.cpuUsage();
    const { rss, heapUsed } = process.memoryUsage();
    const lateNanoseconds = this.#delay.percentile(99);
    this.#delay.reset();
    return [
      single(
        "counter",
        "tidepool_process_cpu_seconds_total",
        "CPU time used",
        (user + system) / 1e6,
      ),
      single("gauge", "tidepool_process_resident_memory_bytes", "Memory in RAM", rss),
      single("gauge", "tidepool_process_heap_used_bytes", "JavaScript memory in use", heapUsed),
      single(
        "gauge",
        "tidepool_event_loop_delay_seconds",
        "99th percentile of how late the event loop was since the last scrape",
        lateNanoseconds / 1e9,
      ),
    ];
  }

  close(): void {
    this.#delay.disable();
  }
}
