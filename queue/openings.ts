import { setTimeout as sleep } from "node:timers/promises";
import type { Queue } from "bullmq";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { VersionSource } from "../serving/running-version.ts";
import type { ServedModel } from "../protocol/served-model.ts";
import type { Redis } from "../redis/connection.ts";
import type { DemandMeter } from "./demand-meter.ts";
import { jobNames, jobOptions, jobPriorities, type OpenJobData } from "./jobs.ts";
import { names } from "./names.ts";
import type { PoolChannel } from "./pool-channel.ts";
import type { Presence } from "./presence.ts";
import type { TicketStore } from "./ticket-store.ts";
import type { VersionTicket } from "./version-ticket.ts";

/** What came of starting a version for the first time. */
export type Opened =
  | { readonly model: Pick<ServedModel, "config" | "splitOversizedBatches"> }
  | { readonly error: readonly [code: StatusCode, message: string] };

const month = 30 * 24 * 3_600_000;
/** Gateways that load the same model at the same time share a failure; a later load tries again. */
const failureKeptMilliseconds = 5000;
/** For those who missed the word that it is done. */
const lookAgainMilliseconds = 500;
const fiveMinutesMilliseconds = 5 * 60_000;

export interface OpeningsOptions {
  readonly pool: string;
  readonly commands: Redis;
  readonly queue: Queue<OpenJobData>;
  readonly channel: PoolChannel;
  readonly meter: DemandMeter;
  readonly tickets: TicketStore;
  readonly presence: Pick<Presence, "present">;
  /** So long does an upload wait without any pool worker: somebody waits for the answer. @defaultValue 5 minutes */
  readonly uploadPatienceMilliseconds?: number;
}

/**
 * Has versions started for the first time: one pool worker is woken for it, whoever else asks meanwhile waits for the
 * same. What it found is kept, so that a version is described and validated against without any pool worker.
 */
export class Openings {
  readonly #options: OpeningsOptions;
  constructor(options: OpeningsOptions) {
    this.#options = options;
  }

  /** The version as it is served; rejects with the reason that it cannot be. */
  async open(key: string, ticket: VersionTicket, source: VersionSource): Promise<ServedModel> {
    await this.#options.tickets.put(key, ticket, source.files);
    const opened = (await this.#find(key)) ?? (await this.#ask(key, ticket));
    if ("error" in opened) throw new InferenceError(...opened.error);
    return { name: ticket.name, version: ticket.version, ...opened.model };
  }

  async #ask(version: string, { name: model, staged }: VersionTicket): Promise<Opened> {
    const { channel, meter } = this.#options;
    let attendedAt = performance.now();
    let heard: (() => void) | undefined;
    const stopHearing = channel.on("opened", (event) => {
      if (event.version === version) heard?.();
    });
    meter.begin();
    try {
      await this.#addJob(version, model);
      for (;;) {
        const word = new Promise<boolean>((resolve) => (heard = () => resolve(true)));
        const opened = await this.#find(version).catch(() => undefined);
        if (opened) return opened;
        const told = await Promise.race([word, sleep(lookAgainMilliseconds, false)]);
        // In case that Redis has lost the job: one that is there stays as it is.
        if (!told) await this.#addJob(version, model).catch(() => {});
        if (staged !== undefined) attendedAt = await this.#attended(attendedAt);
      }
    } finally {
      meter.end();
      stopHearing();
    }
  }

  /** When a pool worker was there last; throws when that is too long ago. @param before what is known of it */
  async #attended(before: number): Promise<number> {
    const {
      pool,
      presence,
      uploadPatienceMilliseconds: patience = fiveMinutesMilliseconds,
    } = this.#options;
    const now = performance.now();
    // While Redis is away nobody knows.
    const some = await presence.present(Date.now()).then(
      (poolWorkers) => poolWorkers.length > 0,
      () => true,
    );
    if (some) return now;
    if (now - before < patience) return before;
    throw new InferenceError(
      StatusCode.Unavailable,
      `pool '${pool}': no pool worker has come in ${patience / 1000} seconds to open the version; start one with tidepool pool, or see why tidepool autoscaler does not, and push again`,
    );
  }

  async #addJob(version: string, model: string): Promise<void> {
    const data: OpenJobData = { version, model };
    await this.#options.queue.add(jobNames.open, data, {
      ...jobOptions,
      jobId: `open-${version}`,
      priority: jobPriorities.open,
    });
  }

  async #find(version: string): Promise<Opened | undefined> {
    const { pool, commands } = this.#options;
    const text = await commands.get(names.opened(pool, version));
    return text === null ? undefined : JSON.parse(text);
  }
}

/** For the pool worker that has started it, or has failed to: everybody who waits for it learns of that. */
export async function publishOpened(
  { pool, commands, channel }: Pick<OpeningsOptions, "pool" | "commands" | "channel">,
  version: string,
  opened: Opened,
): Promise<void> {
  const kept = "error" in opened ? failureKeptMilliseconds : month;
  await commands.set(names.opened(pool, version), JSON.stringify(opened), "PX", kept);
  channel.publish({ type: "opened", version });
}
