import type { InstanceGroup, ModelInstance } from "../instance/model-instance.ts";
import type { LimitedSeat, LimitedSeats } from "./rate-limiter.ts";

/** The instances of a version under a rate limiter: each runs one execution at a time, when its turn has come. */
export class LimitedInstances implements InstanceGroup {
  readonly instances: readonly LimitedInstance[];
  readonly #group: InstanceGroup;
  readonly #seats: LimitedSeats;

  /** @param seats one for each instance of the group, in their order */
  constructor(group: InstanceGroup, seats: LimitedSeats) {
    this.#group = group;
    this.#seats = seats;
    this.instances = group.instances.flatMap((instance, i) => {
      const seat = seats.seats[i];
      return seat ? [new LimitedInstance(instance, seat)] : [];
    });
  }

  get healthy(): boolean {
    return this.#group.healthy;
  }

  next(): ModelInstance | undefined {
    let least: LimitedInstance | undefined;
    for (const instance of this.instances) {
      if (!instance.hasRoom) continue;
      if (!least || instance.share < least.share) least = instance;
    }
    return least;
  }

  onRoom(listener: () => void): void {
    this.#group.onRoom(listener);
    this.#seats.onFree(listener);
  }

  async close(): Promise<void> {
    this.#seats.onFree(() => {});
    await this.#group.close();
    this.#seats.remove();
  }
}

/** An instance that runs only while it holds its resources. */
export class LimitedInstance implements ModelInstance {
  readonly name: string;
  readonly #instance: ModelInstance;
  readonly #seat: LimitedSeat;

  constructor(instance: ModelInstance, seat: LimitedSeat) {
    this.name = instance.name;
    this.#instance = instance;
    this.#seat = seat;
  }

  get hasRoom(): boolean {
    return this.#seat.free && this.#instance.hasRoom;
  }

  get runsOnce(): boolean | undefined {
    return this.#instance.runsOnce;
  }

  /** What it has run, weighed by priority. */
  get share(): number {
    return this.#seat.share;
  }

  execute: ModelInstance["execute"] = (requests) =>
    this.#seat.run(() => this.#instance.execute(requests));
}
