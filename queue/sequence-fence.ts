import { keepsSequences } from "../protocol/keeps-sequences.ts";
import type { ValidInferenceRequest } from "../protocol/valid-request.ts";
import type { Clock } from "../serving/clock.ts";
import { startMissing } from "../serving/refusal.ts";
import type { CountedVersion } from "../serving/running-version.ts";
import type { PendingRequest, ResponseSink, Scheduler } from "../serving/scheduler.ts";
import { idleMilliseconds, sequenceIdOf, type SequencePlace, takePlace } from "./sequence-place.ts";

/**
 * Keeps requests of sequences from states that are not theirs: what comes twice, out of its place, or belongs to an earlier
 * START gets the START error instead. Knows which sequences this pool worker has.
 */
export class SequenceFences {
  readonly #clock: Clock;
  readonly #fences = new Map<CountedVersion, Fence>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The version as requests out of the queue are to be given to it. */
  guarded(version: CountedVersion): CountedVersion {
    if (!keepsSequences(version.model.config)) return version;
    let fence = this.#fences.get(version);
    if (!fence) this.#fences.set(version, (fence = new Fence(version, this.#clock)));
    return { ...version, scheduler: fence };
  }

  /** Sequences that are open here, whose next requests can run nowhere else. */
  get open(): number {
    let open = 0;
    for (const [version, fence] of this.#fences) {
      fence.forgetIdle();
      open += fence.open;
      if (fence.open === 0) this.#fences.delete(version);
    }
    return open;
  }
}

interface OpenSequence {
  /** Absent for one that no gateway has bound. */
  readonly token: string | undefined;
  /** Requests so far. */
  count: number;
  /** Those that are not answered. */
  inHand: number;
  /** When the last one was answered, on the clock. */
  usedAt: number;
}

/** In front of the scheduler of one version. */
class Fence implements Scheduler {
  readonly #scheduler: Scheduler;
  readonly #clock: Clock;
  readonly #idleMilliseconds: number;
  /** By correlation id alone, as the scheduler behind it has them. */
  readonly #open = new Map<bigint | string, OpenSequence>();

  constructor({ scheduler, model }: CountedVersion, clock: Clock) {
    this.#scheduler = scheduler;
    this.#clock = clock;
    this.#idleMilliseconds = idleMilliseconds(model.config);
  }

  get inflight(): number {
    return this.#scheduler.inflight;
  }

  get open(): number {
    return this.#open.size;
  }

  enqueue(pending: PendingRequest): void {
    const { request, place } = takePlace(pending.request);
    const id = sequenceIdOf(request);
    if (id === undefined) {
      this.#scheduler.enqueue({ ...pending, request });
      return;
    }
    const sequence = this.#sequenceOf(request, id, place);
    if (sequence) this.#hand({ ...pending, request }, id, sequence);
    else pending.sink.fail(startMissing(request.modelName, id));
  }

  stop(): Promise<void> {
    return this.#scheduler.stop();
  }

  /** Those that the scheduler has given up by now. */
  forgetIdle(): void {
    const usedBefore = this.#clock.now() - this.#idleMilliseconds;
    for (const [id, { inHand, usedAt }] of this.#open) {
      if (inHand === 0 && usedAt < usedBefore) this.#open.delete(id);
    }
  }

  /** Undefined for a request that must not run. */
  #sequenceOf(
    { sequence: given }: ValidInferenceRequest,
    id: bigint | string,
    place: SequencePlace | undefined,
  ): OpenSequence | undefined {
    const open = this.#open.get(id);
    const isKnown = place !== undefined && open?.token === place.token;
    if (given?.start) {
      if (isKnown) return undefined;
      const begun = { token: place?.token, count: 0, inHand: 0, usedAt: this.#clock.now() };
      this.#open.set(id, begun);
      return begun;
    }
    if (isKnown && place.number === open.count) return open;
    // One before it was lost: what follows would be another sequence.
    if (isKnown && place.number > open.count) this.#open.delete(id);
    return undefined;
  }

  #hand(pending: PendingRequest, id: bigint | string, sequence: OpenSequence): void {
    const { start, end } = pending.request.sequence ?? {};
    let isTaken = false;
    const leave = (isOver: boolean): void => {
      sequence.inHand--;
      sequence.usedAt = this.#clock.now();
      if (isOver && this.#open.get(id) === sequence) this.#open.delete(id);
    };
    const sink: ResponseSink = {
      get room() {
        return pending.sink.room;
      },
      send(response, final) {
        if (final) leave(end === true);
        pending.sink.send(response, final);
      },
      fail(error) {
        // A START that was refused at once has left what was open before it.
        leave(end === true || (start === true && !isTaken));
        pending.sink.fail(error);
      },
    };
    sequence.count++;
    sequence.inHand++;
    this.#scheduler.enqueue({ ...pending, sink });
    isTaken = true;
  }
}
