import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FairShares } from "../../queue/fair-shares.ts";
import { jobPriorities } from "../../queue/jobs.ts";
import { MemoryLedger } from "../helpers/memory-ledger.ts";

/** Items of an envelope at most. */
const largest = 64;
/** Of items that one priority stands for; those run as they came. */
const grain = 4;

interface WaitingJob {
  readonly tenant: string;
  readonly items: number;
  readonly finish: number;
  readonly sentBy: FairShares;
  readonly order: number;
  priority: number;
}

/** A pool with several gateways and a queue that runs by priority, as BullMQ's does. */
class PoolStand {
  readonly served = new Map<string, number>();
  /** How often priorities had to become others. */
  rebases = 0;
  readonly #waiting: WaitingJob[] = [];
  readonly #gateways: readonly FairShares[];
  readonly #poolWorker: FairShares;
  #order = 0;

  constructor(gateways = 1, last: number = jobPriorities.last) {
    const ledger = new MemoryLedger();
    const open = () => new FairShares({ ...jobPriorities, last, ledger });
    this.#gateways = Array.from({ length: gateways }, open);
    this.#poolWorker = open();
    for (const gateway of this.#gateways) gateway.onRebase(() => this.#setPriorities(gateway));
  }

  get size(): number {
    return this.#waiting.length;
  }

  waits(tenant: string): boolean {
    return this.#waiting.some((job) => job.tenant === tenant);
  }

  send(tenant: string, items: number, gateway = 0): void {
    const sentBy = this.#gateways[gateway];
    if (!sentBy) throw new Error("there is no such gateway");
    const finish = sentBy.send(tenant, items);
    const priority = sentBy.priority(finish);
    this.#waiting.push({ tenant, items, finish, sentBy, priority, order: this.#order++ });
  }

  take(): WaitingJob | undefined {
    this.#waiting.sort((a, b) => a.priority - b.priority || a.order - b.order);
    const job = this.#waiting.shift();
    if (!job) return undefined;
    this.#poolWorker.take(job.finish);
    this.served.set(job.tenant, this.servedTo(job.tenant) + job.items);
    return job;
  }

  servedTo(tenant: string): number {
    return this.served.get(tenant) ?? 0;
  }

  /** Everybody hears of everything, which in life takes a moment. */
  async tellAll(): Promise<void> {
    // What is on its way may be older.
    for (let i = 0; i < 3; i++) {
      for (const one of [this.#poolWorker, ...this.#gateways]) await one.tell();
    }
  }

  #setPriorities(gateway: FairShares): void {
    this.rebases++;
    for (const job of this.#waiting) {
      if (job.sentBy === gateway) job.priority = gateway.priority(job.finish);
    }
  }
}

function aMillisecond(): Promise<unknown> {
  return vi.advanceTimersByTimeAsync(1);
}

describe("FairShares", () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it("lets a tenant that asks now and then pass the one that has filled the queue", async () => {
    const stand = new PoolStand(2);
    for (let i = 0; i < 160; i++) stand.send("flood", largest);
    for (let i = 0; i < 20; i++) {
      stand.take();
      await stand.tellAll();
      stand.send("calm", 1, i % 2);
      expect(stand.take()?.tenant).toBe("calm");
      await stand.tellAll();
    }
  });

  it("gives nothing for having had nothing to ask", async () => {
    const stand = new PoolStand();
    for (let i = 0; i < 200; i++) stand.send("busy", 10);
    for (let i = 0; i < 100; i++) stand.take();
    await stand.tellAll();
    for (let i = 0; i < 100; i++) stand.send("late", 10);
    const before = stand.servedTo("busy");
    for (let i = 0; i < 100; i++) stand.take();
    expect(Math.abs(stand.servedTo("late") - (stand.servedTo("busy") - before))).toBeLessThan(40);
  });

  it("gives back what was withdrawn", () => {
    const shares = new FairShares({ ...jobPriorities, ledger: new MemoryLedger() });
    const [first, second] = [shares.send("a", 1000), shares.send("a", 10)];
    shares.giveBack("a", 1000);
    expect(shares.send("a", 10) - first).toBeLessThanOrEqual(second - first);
    shares.close();
  });

  it("stays within the priorities that BullMQ takes, whatever waits", () => {
    const shares = new FairShares({ ...jobPriorities, ledger: new MemoryLedger() });
    const priorities = [1, 1e6, 1e9].map((items) => shares.priority(shares.send("a", items)));
    expect(priorities[0]).toBe(jobPriorities.first);
    expect(priorities[1]).toBe(jobPriorities.first + Math.floor((1e6 + 1) / grain));
    expect(priorities[2]).toBe(2_097_151);
    shares.close();
  });

  it("goes on when the ledger cannot be reached, and tells later what it could not", async () => {
    const ledger = new MemoryLedger();
    const away = vi.spyOn(ledger, "exchange").mockRejectedValueOnce(new Error("away"));
    const [one, other] = [0, 0].map(() => new FairShares({ ...jobPriorities, ledger }));
    expect(one?.send("a", 100)).toBe(100);
    await vi.advanceTimersByTimeAsync(1000);
    expect(away).toHaveBeenCalledTimes(1);
    await one?.tell();
    await other?.tell();
    expect(other?.send("a", 1)).toBe(101);
  });

  describe("whatever comes", () => {
    const tenants = ["a", "b", "c"];
    interface Arrival {
      readonly tenant: string;
      readonly items: number;
      readonly gateway: number;
      /** Jobs that run before. */
      readonly takes: number;
    }
    const arrivals: fc.Arbitrary<Arrival[]> = fc.array(
      fc.record({
        tenant: fc.constantFrom("a", "a", "a", "b", "b", "c"),
        items: fc.integer({ min: 1, max: largest }),
        gateway: fc.nat({ max: 2 }),
        takes: fc.constantFrom(0, 0, 0, 1, 1, 2, 5),
      }),
      { minLength: 100, maxLength: 400, size: "max" },
    );

    /**
     * Runs arrivals and gives by how many items one of two tenants that both had something waiting all the time was ahead
     * of the other at most.
     */
    async function largestLead(
      stand: PoolStand,
      given: readonly Arrival[],
      heard: () => Promise<unknown>,
    ): Promise<number> {
      let lead = 0;
      /** What had been served to each when the two were last seen without anything waiting. */
      const since = new Map<string, Map<string, number>>();
      const take = async (): Promise<void> => {
        const busy = tenants.filter((tenant) => stand.waits(tenant));
        stand.take();
        await heard();
        for (const one of tenants) {
          for (const other of tenants) {
            const before = since.get(one + other);
            if (!busy.includes(one) || !busy.includes(other) || !before) {
              since.set(one + other, new Map(stand.served));
              continue;
            }
            const [mine, theirs] = [one, other].map(
              (tenant) => stand.servedTo(tenant) - (before.get(tenant) ?? 0),
            );
            lead = Math.max(lead, (theirs ?? 0) - (mine ?? 0));
          }
        }
      };
      for (const { tenant, items, gateway, takes } of given) {
        for (let i = 0; i < takes; i++) await take();
        stand.send(tenant, items, gateway);
        await heard();
      }
      while (stand.size > 0) await take();
      return lead;
    }

    const anEnvelopeOfEach = 2 * largest + 3 * grain;

    it("gives each its share to an envelope of each", async () => {
      await fc.assert(
        fc.asyncProperty(arrivals, async (given) => {
          const stand = new PoolStand(3);
          const lead = await largestLead(stand, given, () => stand.tellAll());
          expect(lead).toBeLessThanOrEqual(anEnvelopeOfEach);
        }),
        { numRuns: 40 },
      );
    });

    it("does so while the time outruns the priorities again and again", async () => {
      let rebases = 0;
      await fc.assert(
        fc.asyncProperty(arrivals, async (given) => {
          const stand = new PoolStand(3, 2000);
          const lead = await largestLead(stand, given, () => stand.tellAll());
          expect(lead).toBeLessThanOrEqual(anEnvelopeOfEach);
          rebases += stand.rebases;
        }),
        { numRuns: 40 },
      );
      expect(rebases).toBeGreaterThan(20);
    });

    it("does so but for a moment when processes hear of each other late", async () => {
      await fc.assert(
        fc.asyncProperty(arrivals, async (given) => {
          const stand = new PoolStand(3, 2000);
          // A job takes a millisecond, and what they know is at most a tenth of a second old.
          const lead = await largestLead(stand, given, aMillisecond);
          expect(lead).toBeLessThanOrEqual(100 * largest);
        }),
        { numRuns: 40 },
      );
    });
  });
});
