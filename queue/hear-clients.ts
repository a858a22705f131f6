import type { EnvelopeRun } from "./envelope-run.ts";
import type { PoolChannel } from "./pool-channel.ts";

/**
 * Tells the runs of a pool worker what gateways say of their clients: who waits no longer, and who has read how far.
 *
 * @returns ends that
 */
export function hearClients(channel: PoolChannel, runs: ReadonlySet<EnvelopeRun>): () => void {
  const each = (envelope: string, act: (run: EnvelopeRun) => void): void => {
    for (const run of runs) if (run.envelope === envelope) act(run);
  };
  const ends = [
    channel.on("cancel", ({ envelope, index }) => each(envelope, (run) => run.cancel(index))),
    channel.on("read", ({ envelope, index, number }) =>
      each(envelope, (run) => run.read(index, number)),
    ),
  ];
  return () => ends.forEach((end) => end());
}
