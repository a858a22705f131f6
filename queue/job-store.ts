import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { Job, JobError, JobState } from "../protocol/job.ts";
import type { Redis } from "../redis/connection.ts";
import { execute } from "../redis/execute.ts";
import type { ObjectStore } from "./job-objects.ts";
import {
  type JobRecord,
  type NewRecord,
  type RunLimits,
  readRecord,
  recordFields,
  writeRecord,
} from "./job-record.ts";
import { jobScripts } from "./job-scripts.ts";
import { names } from "./names.ts";
import { claimBytes } from "./payload-store.ts";

/** What a pool worker needs to run a job. */
export interface JobInput {
  readonly version: string;
  readonly tenant: string;
  /** Since when it has waited for this attempt, in milliseconds since the epoch. */
  readonly queuedAt: number;
  /** W3C trace context of what accepted it, where that is traced. */
  readonly traceparent: string | undefined;
  /** Undefined when Redis has lost it. */
  readonly frame: Buffer | undefined;
  readonly limits: RunLimits;
}

/** How a job has ended. */
export type JobEnd = { readonly result: Buffer } | { readonly error: JobError } | "cancelled";

/** As long as the ticket of a version: without it, no pool worker can run the job. */
const unfinishedMilliseconds = 30 * 24 * 3_600_000;
/** So many jobs of one principal can be listed; older ones are still found by their id. */
const listedJobs = 10_000;

const unfinishedStates = "queued starting running";

/** The durable requests of one pool in Redis: each a hash with its state, its request until it is done, and its result. */
export class JobStore {
  readonly #pool: string;
  readonly #commands: Redis;
  readonly #objects: ObjectStore;

  constructor(pool: string, commands: Redis, objects: ObjectStore) {
    this.#pool = pool;
    this.#commands = commands;
    this.#objects = objects;
  }

  /**
   * Leaves a job that is there already as it is; refuses one more than so many that are unfinished. Gives true when no
   * other one is: somebody may have to be woken for it.
   */
  async create(
    id: string,
    record: NewRecord,
    frame: Buffer,
    maxUnfinished: number,
  ): Promise<boolean> {
    const { owner, createdAt } = record;
    const request = this.#requestKey(id);
    const inline = await this.#keep(request, frame, unfinishedMilliseconds);
    const unfinished = await this.#commands.eval(
      jobScripts.create,
      3,
      this.#key(id),
      names.unfinishedJobs(this.#pool),
      names.jobsOf(this.#pool, owner),
      id,
      createdAt,
      placeOf({ createdAt, id }),
      maxUnfinished,
      unfinishedMilliseconds,
      listedJobs,
      ...writeRecord(record),
      "request",
      inline,
    );
    if (unfinished === -1) {
      if (inline.byteLength === 0) await this.#objects.remove(request);
      throw new InferenceError(
        StatusCode.Unavailable,
        `durable requests: given one more than ${maxUnfinished} that have not ended, expected at most so many. ` +
          "Use --job-max-unfinished to increase the limit.",
      );
    }
    return unfinished === 1;
  }

  async read(id: string): Promise<JobRecord | undefined> {
    return readJob(this.#commands, this.#pool, id);
  }

  /** The request of a job that is not done. */
  async request(id: string): Promise<Buffer | undefined> {
    const inline = await this.#commands.hgetBuffer(this.#key(id), "request");
    return this.#whole(inline, this.#requestKey(id));
  }

  /** The reply that a job got that is done. */
  async result(id: string): Promise<Buffer | undefined> {
    const inline = await this.#commands.hgetBuffer(this.#key(id), "result");
    return this.#whole(inline, names.jobResult(this.#pool, id));
  }

  /** A pool worker has it now. Undefined when it has ended: then nothing is to be done. */
  async begin(id: string, attempts: number, now: number): Promise<JobInput | undefined> {
    const fields = { attempts: String(attempts), started: String(now), error: "" };
    const from = unfinishedStates;
    const begun = await this.#change(id, { from, to: "starting", mode: "on", now, fields });
    if (!begun) return undefined;
    const [version, tenant, limits, queued, traceparent] = await this.#commands.hmget(
      this.#key(id),
      "version",
      "tenant",
      "limits",
      "queued",
      "traceparent",
    );
    return {
      version: version ?? "",
      tenant: tenant ?? "",
      queuedAt: Number(queued ?? now),
      traceparent: traceparent ?? undefined,
      frame: await this.request(id),
      limits: JSON.parse(limits ?? "{}"),
    };
  }

  /** Its version can answer, and does. */
  async running(id: string, now: number): Promise<void> {
    await this.#change(id, { from: "starting", to: "running", mode: "on", now });
  }

  /** An attempt has failed; there will be another. False when the job has ended meanwhile. */
  queueAgain(id: string, error: JobError, now: number): Promise<boolean> {
    const fields = { error: JSON.stringify(error), queued: String(now) };
    return this.#change(id, { from: "starting running", to: "queued", mode: "on", now, fields });
  }

  /** Ends a job that has not ended; false when it has, and nothing is changed. */
  async end(id: string, end: JobEnd, keptMilliseconds: number, now: number): Promise<boolean> {
    const change = { from: unfinishedStates, keptMilliseconds, now };
    if (typeof end === "object" && "error" in end) {
      const fields = { error: JSON.stringify(end.error) };
      const failed = await this.#change(id, { ...change, to: "failed", mode: "fail", fields });
      if (failed) await this.#objects.keep(this.#requestKey(id), keptMilliseconds);
      return failed;
    }
    // Most requests are small: a bucket need not be asked to remove what it never had.
    const isLarge = (await this.#commands.hstrlen(this.#key(id), "request")) === 0;
    const ended =
      end === "cancelled"
        ? await this.#change(id, { ...change, to: "cancelled", mode: "end" })
        : await this.#done(id, end.result, change);
    if (ended && isLarge) await this.#objects.remove(this.#requestKey(id));
    return ended;
  }

  /** Has a failed job run again. @param version key of the one that is to run it */
  async replay(id: string, version: string, now: number): Promise<boolean> {
    await this.#objects.keep(this.#requestKey(id), unfinishedMilliseconds);
    return this.#change(id, {
      from: "failed",
      to: "queued",
      mode: "again",
      keptMilliseconds: unfinishedMilliseconds,
      now,
      fields: { version, queued: String(now) },
    });
  }

  /**
   * The newest jobs of an owner; some may have been forgotten meanwhile.
   *
   * @param before the place of the last one that was seen
   */
  async places(owner: string, limit: number, before?: string): Promise<readonly string[]> {
    const key = names.jobsOf(this.#pool, owner);
    const from = before === undefined ? "+" : `(${before}`;
    return this.#commands.zrange(key, from, "-", "BYLEX", "REV", "LIMIT", 0, limit);
  }

  /** Those at places; forgotten ones are left out, and leave the list. */
  async readPlaces(owner: string, places: readonly string[]): Promise<readonly JobRecord[]> {
    if (places.length === 0) return [];
    const pipeline = this.#commands.pipeline();
    for (const place of places) pipeline.hmget(this.#key(idAt(place)), ...recordFields);
    const results = await execute(pipeline);
    const records = results.map((values, index) =>
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what HMGET gives
      readRecord(idAt(places[index] ?? ""), values as (string | null)[]),
    );
    const gone = places.filter((_, index) => !records[index]);
    if (gone.length > 0) await this.#commands.zrem(names.jobsOf(this.#pool, owner), ...gone);
    return records.filter((record) => record !== undefined);
  }

  /** Some of the unfinished ones. @param cursor "0" at first, then what came with the ones before */
  async unfinished(cursor: string): Promise<[cursor: string, ids: readonly string[]]> {
    const key = names.unfinishedJobs(this.#pool);
    const [next, members] = await this.#commands.zscan(key, cursor, "COUNT", 100);
    return [next, members.filter((_, index) => index % 2 === 0)];
  }

  /** Redis has forgotten the job: it counts no longer. */
  async forget(id: string): Promise<void> {
    await this.#commands.zrem(names.unfinishedJobs(this.#pool), id);
  }

  async #done(
    id: string,
    frame: Buffer,
    change: Pick<JobChange, "from" | "now"> & { readonly keptMilliseconds: number },
  ): Promise<boolean> {
    const key = names.jobResult(this.#pool, id);
    const result = await this.#keep(key, frame, change.keptMilliseconds);
    return this.#change(id, { ...change, to: "done", mode: "end", fields: { result } });
  }

  /** Gives what stands in the job's own entry: the bytes, or nothing in place of many. */
  async #keep(key: string, bytes: Buffer, keptMilliseconds: number): Promise<Buffer> {
    if (bytes.byteLength <= claimBytes) return bytes;
    await this.#objects.put(key, bytes, keptMilliseconds);
    return Buffer.alloc(0);
  }

  async #whole(inline: Buffer | null, key: string): Promise<Buffer | undefined> {
    if (inline === null) return undefined;
    return inline.byteLength > 0 ? inline : this.#objects.get(key);
  }

  async #change(id: string, change: JobChange): Promise<boolean> {
    const { from, to, mode, keptMilliseconds = 0, now, fields = {} } = change;
    const changed = await this.#commands.eval(
      jobScripts.change,
      4,
      this.#key(id),
      names.unfinishedJobs(this.#pool),
      names.undeliveredWebhooks(this.#pool),
      names.webhooksOfTenants(this.#pool),
      id,
      from,
      mode,
      keptMilliseconds,
      now,
      unfinishedMilliseconds,
      names.poolChannel(this.#pool),
      "state",
      to,
      ...Object.entries(fields).flat(),
    );
    return changed === 1;
  }

  #requestKey(id: string): string {
    return names.jobRequest(this.#pool, id);
  }

  #key(id: string): string {
    return names.job(this.#pool, id);
  }
}

/** A job without its request and result; undefined when it is not there, or no longer. */
export async function readJob(
  commands: Redis,
  pool: string,
  id: string,
): Promise<JobRecord | undefined> {
  return readRecord(id, await commands.hmget(names.job(pool, id), ...recordFields));
}

interface JobChange {
  /** States, with blanks between them. */
  readonly from: string;
  readonly to: JobState;
  readonly mode: "on" | "end" | "fail" | "again";
  readonly keptMilliseconds?: number;
  readonly now: number;
  readonly fields?: Readonly<Record<string, string | Buffer>>;
}

/** Where a job stands among its owner's: by time, then by id. */
export function placeOf({ createdAt, id }: Pick<Job, "createdAt" | "id">): string {
  return `${createdAt.toString(36).padStart(9, "0")}:${id}`;
}

function idAt(place: string): string {
  return place.slice(place.indexOf(":") + 1);
}
