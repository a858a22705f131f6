import type { InferenceError } from "../protocol/error.ts";
import type { ServedModel } from "../protocol/served-model.ts";
import { startMissing } from "../serving/refusal.ts";
import { killed } from "./killed.ts";
import type { PoolLink } from "./pool-link.ts";
import { queueAway } from "./queue-away.ts";
import type { Sender } from "./sender.ts";
import type { SentRequest } from "./sent-envelope.ts";
import type { BoundSequence } from "./sequence-bindings.ts";
import { idleMilliseconds, sequenceIdOf, withPlace } from "./sequence-place.ts";
import type { WatchedRequest } from "./sequence-workers.ts";

/** A request that may have to wait for others of its sequence before it is on its way. */
export interface HeldRequest extends SentRequest {
  /** Where it waits, or has waited. */
  inLine?: Line;
  /** How it is on its way, since it is. */
  way?: SentRequest;
  /** Pool workers that had it when they died. */
  deaths?: number;
}

/** The requests of one sequence that this gateway has; the first is on its way, or about to be. */
interface Line {
  /** Of its binding. */
  readonly key: string;
  readonly requests: HeldRequest[];
}

/** What a gateway that dies leaves bound is forgotten so long after the sequence itself. */
const keptLongerMilliseconds = 10_000;
const longestMilliseconds = 30 * 24 * 3_600_000;
/** A START that has had so many may be what kills. */
const mostDeaths = 2;

/**
 * Sends requests of sequences to the pool workers that have them: a START chooses one, and those that follow go where it
 * went, whichever gateways they come through. Each waits for the answer to the one before it, so that they keep their
 * order whatever happens on the way.
 */
export class SequenceSender {
  readonly #version: string;
  readonly #link: PoolLink;
  readonly #sender: Sender;
  readonly #keptMilliseconds: number;
  readonly #lines = new Map<string, Line>();

  /** @param version its key */
  constructor(version: string, model: ServedModel, link: PoolLink) {
    const idle = idleMilliseconds(model.config);
    this.#version = version;
    this.#link = link;
    this.#sender = link.sender;
    this.#keptMilliseconds = Math.ceil(
      Math.min(idle, longestMilliseconds) + keptLongerMilliseconds,
    );
  }

  send(held: HeldRequest): void {
    const { request, call } = held.pending;
    const id = sequenceIdOf(request);
    if (id === undefined) {
      this.#sender.send(held);
      return;
    }
    const key = this.#link.sequences.bindings.key(this.#version, call.principal.tenant, id);
    let line = this.#lines.get(key);
    if (!line) this.#lines.set(key, (line = { key, requests: [] }));
    held.inLine = line;
    line.requests.push(held);
    this.#link.meter.begin();
    if (line.requests.length === 1) void this.#advance(line);
  }

  /** Nothing more is expected for the request. */
  forget(held: HeldRequest): void {
    if (held.way || !held.inLine) this.#sender.forget(held.way ?? held);
    // It stays in its line, where what follows must not go on without it.
    else this.#end(held);
  }

  /** Sends the first request of a line; the others follow when it is answered. */
  async #advance(line: Line): Promise<void> {
    for (;;) {
      const [first] = line.requests;
      if (!first) break;
      if (await this.#begin(line, first)) return;
      line.requests.shift();
    }
    this.#lines.delete(line.key);
  }

  /** True when the request is on its way. */
  async #begin(line: Line, first: HeldRequest): Promise<boolean> {
    try {
      await this.#place(line, first);
    } catch (cause) {
      if (!first.over) this.#refuse(first, queueAway(cause));
    }
    return first.way !== undefined;
  }

  async #place(line: Line, first: HeldRequest): Promise<void> {
    const { bindings, poolWorkers } = this.#link.sequences;
    const { modelName, sequence } = first.pending.request;
    if (sequence?.start) {
      // What is open with the same id ends here. Alone, the request needs nobody who knows of it.
      const poolWorker = sequence.end
        ? undefined
        : await poolWorkers.choose(this.#version, () => !first.over);
      if (first.over || poolWorker === undefined) {
        await bindings.remove(line.key);
        if (!first.over) this.#post(line, first);
        return;
      }
      const bound = { poolWorker, token: poolWorkers.newToken(), number: 0 };
      // Written before the request, on the same connection; when it fails, so does that.
      bindings.bind(line.key, bound, this.#keptMilliseconds).catch(() => {});
      this.#post(line, first, bound);
      return;
    }
    const bound = await bindings.next(line.key, this.#keptMilliseconds);
    // The gap in the numbers tells its pool worker that the sequence is not whole.
    if (first.over) return;
    if (bound) this.#post(line, first, bound);
    else this.#refuse(first, startMissing(modelName, sequence?.id ?? 0n));
  }

  /** Puts it on its way: into the line of its pool worker, or into the queue of all. */
  #post(line: Line, first: HeldRequest, bound?: BoundSequence): void {
    const { sequences, meter } = this.#link;
    const { pending } = first;
    const watched = bound && this.#watched(line, first, bound);
    const way: SentRequest = {
      pending: bound ? { ...pending, request: withPlace(pending.request, bound) } : pending,
      version: this.#version,
      over: false,
      replies: 0,
      ...(bound && { line: sequences.lineOf(bound.poolWorker) }),
      ...(watched && { lost: () => watched.lost() }),
      done: () => {
        if (watched) sequences.poolWorkers.unwatch(watched);
        // Otherwise it is about to be sent again.
        if (first.way === way) this.#answered(line, first, bound);
      },
    };
    if (watched) sequences.poolWorkers.watch(watched);
    first.way = way;
    this.#sender.send(way);
    // Of the time before; the sender has begun to count.
    meter.end();
  }

  #watched(line: Line, first: HeldRequest, bound: BoundSequence): WatchedRequest {
    const { bindings } = this.#link.sequences;
    return {
      poolWorker: bound.poolWorker,
      missed: false,
      renew: () => void bindings.keep(line.key, this.#keptMilliseconds).catch(() => {}),
      lost: () => this.#lost(line, first, bound),
    };
  }

  #answered(line: Line, first: HeldRequest, bound?: BoundSequence): void {
    first.over = true;
    first.done();
    if (bound && first.pending.request.sequence?.end) this.#release(line, bound);
    line.requests.shift();
    void this.#advance(line);
  }

  /** The pool worker is gone, or Redis has lost the request: a START begins elsewhere, with what is left nobody can go on. */
  #lost(line: Line, first: HeldRequest, bound: BoundSequence): void {
    const { way } = first;
    if (!way || way.over) return;
    this.#release(line, bound);
    delete first.way;
    this.#link.meter.begin();
    this.#sender.forget(way);
    void this.#again(line, first, way);
  }

  async #again(line: Line, first: HeldRequest, way: SentRequest): Promise<void> {
    const withdrawal = await this.#sender.withdraw(way).catch(() => "gone");
    if (withdrawal === "taken") {
      first.deaths = (first.deaths ?? 0) + 1;
      // Who had it will not remove it.
      void this.#sender.drop(way).catch(() => {});
    }
    const { modelName, sequence } = first.pending.request;
    if (!first.over && (!sequence?.start || way.replies > 0))
      this.#refuse(first, startMissing(modelName, sequence?.id ?? 0n));
    else if (!first.over && first.deaths === mostDeaths) this.#refuse(first, killed(modelName));
    await this.#advance(line);
  }

  #release({ key }: Line, { token }: BoundSequence): void {
    void this.#link.sequences.bindings.release(key, token).catch(() => {});
  }

  #refuse(held: HeldRequest, error: InferenceError): void {
    this.#end(held);
    held.pending.sink.fail(error);
  }

  /** Of a request that was not on its way. */
  #end(held: HeldRequest): void {
    held.over = true;
    held.done();
    this.#link.meter.end();
  }
}
