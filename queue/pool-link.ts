import { Queue } from "bullmq";
import type { Redis } from "../redis/connection.ts";
import type { Clock } from "../serving/clock.ts";
import type { QueueObservation } from "../telemetry/queue-metrics.ts";
import { Demand } from "./demand.ts";
import { DemandMeter } from "./demand-meter.ts";
import { Envelopes } from "./envelope.ts";
import { fairLedger } from "./fair-ledger.ts";
import { FairShares } from "./fair-shares.ts";
import { requestsPerEnvelope } from "./gathering.ts";
import { jobPriorities } from "./jobs.ts";
import { names, queueName } from "./names.ts";
import { observeQueue } from "./observe-queue.ts";
import { Openings } from "./openings.ts";
import { PoolChannel } from "./pool-channel.ts";
import { PoolCounters } from "./pool-counters.ts";
import { PoolHealth } from "./pool-health.ts";
import { Presence } from "./presence.ts";
import { Sender } from "./sender.ts";
import { openSequenceLink, type SequenceLink } from "./sequence-link.ts";
import { TicketStore } from "./ticket-store.ts";
import { StatisticsBoard } from "./statistics-board.ts";

export interface PoolLinkOptions {
  readonly pool: string;
  /** The requests that one pool worker should have in hand. */
  readonly targetInFlight: number;
  readonly gateway: string;
  readonly commands: Redis;
  readonly subscriber: Redis;
  readonly clock: Clock;
}

/** A gateway's way to the pool workers of one pool. */
export interface PoolLink {
  readonly pool: string;
  readonly queue: Queue;
  readonly channel: PoolChannel;
  readonly board: StatisticsBoard;
  readonly openings: Openings;
  readonly tickets: TicketStore;
  readonly sender: Sender;
  readonly shares: FairShares;
  readonly meter: DemandMeter;
  readonly presence: Presence;
  readonly health: PoolHealth;
  readonly sequences: SequenceLink;
  /** For a scrape. */
  observe(): Promise<QueueObservation>;
  close(): Promise<void>;
}

export async function openPoolLink(options: PoolLinkOptions): Promise<PoolLink> {
  const { pool, gateway, commands, subscriber, clock } = options;
  const channel = await PoolChannel.open(pool, commands, subscriber);
  const queue = openQueue(pool, commands);
  const envelopes = new Envelopes(pool, commands);
  const demand = new Demand(pool, commands);
  const meter = new DemandMeter(gateway, demand, channel);
  const presence = new Presence(pool, commands);
  const counters = new PoolCounters(pool, commands);
  const tickets = new TicketStore(pool, commands);
  const shares = openShares(pool, commands);
  await shares.tell();
  return {
    pool,
    queue,
    channel,
    board: new StatisticsBoard(pool, gateway, commands),
    openings: new Openings({ pool, commands, queue, channel, meter, tickets, presence }),
    tickets,
    sender: new Sender({
      gateway,
      commands,
      envelopes,
      queue,
      shares,
      meter,
      clock,
      requestsPerEnvelope: requestsPerEnvelope(options.targetInFlight),
    }),
    shares,
    meter,
    presence,
    health: new PoolHealth(presence),
    sequences: openSequenceLink({ ...options, presence, channel }),
    observe: () => observeQueue({ pool, queue, demand, presence, counters }, Date.now()),
    close: () => {
      shares.close();
      return queue.close();
    },
  };
}

/** What a process knows of the shares of a pool's tenants. */
export function openShares(pool: string, commands: Redis): FairShares {
  return new FairShares({ ...jobPriorities, ledger: fairLedger(pool, commands) });
}

/** The queue of a pool, on a connection that the caller keeps: commands of both go in the order in which they are sent. */
export function openQueue(pool: string, commands: Redis): Queue {
  const queue = new Queue(queueName, {
    connection: commands,
    prefix: names.queuePrefix(pool),
    skipWaitingForReady: true,
  });
  // Each command that fails rejects on its own.
  queue.on("error", () => {});
  return queue;
}
