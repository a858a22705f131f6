import type { ColdStartMarks } from "../protocol/cold-start.ts";
import type { FetchProgress } from "../repository/model-store.ts";
import type { StartListener, StartPhase } from "../serving/running-version.ts";
import type { PoolChannel } from "./pool-channel.ts";

/** Often enough for a bar on a screen. */
const tellMilliseconds = 100;

/** Notes when a pool worker begins each step of a start, and tells those who wait how it goes on. */
export class StartReporter implements StartListener {
  readonly #version: string;
  readonly #channel: PoolChannel;
  readonly #begunAt = new Map<StartPhase, number>();
  #toldAt = -Infinity;

  /** @param version its key */
  constructor(version: string, channel: PoolChannel) {
    this.#version = version;
    this.#channel = channel;
  }

  onPhase(phase: StartPhase): void {
    if (this.#begunAt.has(phase)) return;
    this.#begunAt.set(phase, Date.now());
    this.#channel.publish({ type: "progress", version: this.#version, phase });
  }

  onFetched({ fetchedBytes, totalBytes }: FetchProgress): void {
    const now = performance.now();
    if (fetchedBytes < totalBytes && now - this.#toldAt < tellMilliseconds) return;
    this.#toldAt = now;
    const event = { type: "progress", version: this.#version, phase: "fetch" } as const;
    this.#channel.publish({ ...event, fetchedBytes, totalBytes });
  }

  /**
   * The version can answer.
   * @param decidedAt when somebody decided on this pool worker; milliseconds since the epoch
   */
  ready(decidedAt: number): ColdStartMarks {
    this.#channel.publish({ type: "progress", version: this.#version, phase: "ready" });
    const readyAt = Date.now();
    const warmupAt = this.#begunAt.get("warmup") ?? readyAt;
    const loadAt = this.#begunAt.get("load") ?? warmupAt;
    const fetchAt = this.#begunAt.get("fetch") ?? loadAt;
    return { decidedAt, fetchAt, loadAt, warmupAt, readyAt };
  }
}
