import { afterEach, describe, expect, it } from "vitest";
import type { Scaler } from "../../autoscaler/scaler.ts";
import { eventually } from "../helpers/eventually.ts";

/** A scaler, and the truth about what it scales. */
export interface OpenScaler {
  readonly scaler: Scaler;
  /** What a count outside of the scaler gives. */
  readonly running: () => number | Promise<number>;
  /** Ends what the scaler does not end itself. */
  readonly release: () => Promise<void>;
}

export const reason = { demandSeenAt: Date.now(), decidedAt: Date.now() };
export const soon = (): AbortSignal => AbortSignal.timeout(10_000);

/** What every scaler promises. */
export function describeScaler(name: string, open: () => Promise<OpenScaler>): void {
  describe(`${name}, as a scaler`, () => {
    let opened: OpenScaler | undefined;
    const start = async (): Promise<OpenScaler> => (opened = await open());

    afterEach(async () => {
      await opened?.scaler.close(soon());
      await opened?.release();
      opened = undefined;
    });

    it("begins with nothing and grows to what is asked for", async () => {
      const { scaler, running } = await start();
      expect(scaler.size()).toBe(0);
      await scaler.scaleTo(3, reason);
      expect(scaler.size()).toBe(3);
      await eventually(async () => expect(await running()).toBe(3));
    });

    it("shrinks, and back to nothing", async () => {
      const { scaler, running } = await start();
      await scaler.scaleTo(3, reason);
      await scaler.scaleTo(1, reason);
      expect(scaler.size()).toBe(1);
      await eventually(async () => expect(await running()).toBe(1));
      await scaler.scaleTo(0, reason);
      expect(scaler.size()).toBe(0);
      await eventually(async () => expect(await running()).toBe(0));
    });

    it("lets the last of several calls win", async () => {
      const { scaler, running } = await start();
      await Promise.all([4, 0, 3, 2].map((count) => scaler.scaleTo(count, reason)));
      expect(scaler.size()).toBe(2);
      await eventually(async () => expect(await running()).toBe(2));
    });

    it("changes nothing for the size that it has", async () => {
      const { scaler, running } = await start();
      await scaler.scaleTo(2, reason);
      await scaler.scaleTo(2, reason);
      expect(scaler.size()).toBe(2);
      await eventually(async () => expect(await running()).toBe(2));
    });

    it("scales no more once it is closed", async () => {
      const { scaler } = await start();
      await scaler.close(soon());
      await scaler.close(soon());
      await expect(scaler.scaleTo(1, reason)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    });
  });
}
