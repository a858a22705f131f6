import { readdir, stat } from "node:fs/promises";
import path from "node:path";
import type { Startable } from "../pool/resident-versions.ts";
import type { PoolChannel } from "../queue/pool-channel.ts";
import { StartReporter } from "../queue/start-reporter.ts";
import type { TicketStore } from "../queue/ticket-store.ts";
import type { VersionTicket } from "../queue/version-ticket.ts";
import type { ModelRepository } from "../repository/model-repository.ts";
import type { RepositoryVersion } from "../repository/repository-model.ts";
import type { CountedVersion, StartVersion } from "../serving/running-version.ts";

export interface PoolVersionsOptions {
  readonly tickets: TicketStore;
  readonly repository: ModelRepository;
  readonly start: StartVersion<CountedVersion>;
  /** Where those hear of a start who wait for it. */
  readonly channel: PoolChannel;
  /** When somebody decided on this pool worker; milliseconds since the epoch. */
  readonly decidedAt: number;
}

/** Makes the function that finds and fetches the version of a key, so that it only has to be started. */
export function versionFinder(options: PoolVersionsOptions): (key: string) => Promise<Startable> {
  const { tickets, start, channel, decidedAt } = options;
  return async (key) => {
    const reporter = new StartReporter(key, channel);
    reporter.onPhase("fetch");
    const ticket = await tickets.get(key);
    const { name, version, config, fingerprint } = ticket;
    const found = await foundVersion(ticket, options);
    const files = await found.fetch({ onProgress: (progress) => reporter.onFetched(progress) });
    return {
      bytes: await bytesBelow(files.versionDirectory),
      async start() {
        const began = performance.now();
        const source = { name, version, config, fingerprint, fetch: () => Promise.resolve(files) };
        reporter.onPhase("load");
        const running = await start(source, reporter);
        running.statistics.loaded((performance.now() - began) / 1000);
        return Object.assign(running, { coldStart: reporter.ready(decidedAt) });
      },
    };
  };
}

async function foundVersion(
  ticket: VersionTicket,
  { tickets, repository }: PoolVersionsOptions,
): Promise<RepositoryVersion> {
  const { name, fingerprint, brought, staged } = ticket;
  const version = Number(ticket.version);
  if (brought) return repository.broughtVersion(name, version, await tickets.files(ticket));
  if (staged !== undefined) return repository.stagedVersion(staged, version, fingerprint);
  return repository.version(name, version, fingerprint);
}

async function bytesBelow(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true });
  const sizes = await Promise.all(
    names.map(async (name) => (await stat(path.join(folder, name))).size),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
