import type { Redis } from "../redis/connection.ts";
import type { PoolChannel } from "./pool-channel.ts";
import type { Presence } from "./presence.ts";
import type { EnvelopeLine } from "./sent-envelope.ts";
import { SequenceBindings } from "./sequence-bindings.ts";
import { pushToLine } from "./sequence-line.ts";
import { SequenceWorkers } from "./sequence-workers.ts";

/** A gateway's way to the sequences of one pool. */
export interface SequenceLink {
  readonly bindings: SequenceBindings;
  readonly poolWorkers: SequenceWorkers;
  /** Of a pool worker, by its id. */
  lineOf(poolWorker: string): EnvelopeLine;
}

export function openSequenceLink(options: {
  readonly pool: string;
  readonly gateway: string;
  readonly commands: Redis;
  readonly presence: Presence;
  readonly channel: PoolChannel;
}): SequenceLink {
  const { pool, gateway, commands } = options;
  return {
    bindings: new SequenceBindings(pool, commands),
    poolWorkers: new SequenceWorkers(gateway, options),
    lineOf: (poolWorker) => ({
      name: poolWorker,
      push: (data) => pushToLine({ pool, commands }, poolWorker, data),
    }),
  };
}
