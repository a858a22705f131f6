import { readdir, stat } from "node:fs/promises";
import path from "node:path";
import type { Startable } from "../pool/resident-versions.ts";
import type { TicketStore } from "../queue/ticket-store.ts";
import type { ModelRepository } from "../repository/model-repository.ts";
import type { CountedVersion, StartVersion } from "../serving/running-version.ts";

export interface PoolVersionsOptions {
  readonly tickets: TicketStore;
  readonly repository: ModelRepository;
  readonly start: StartVersion<CountedVersion>;
}

/** Makes the function that finds and fetches the version of a key, so that it only has to be started. */
export function versionFinder(options: PoolVersionsOptions): (key: string) => Promise<Startable> {
  const { tickets, repository, start } = options;
  return async (key) => {
    const ticket = await tickets.get(key);
    const { name, version, config, fingerprint, brought } = ticket;
    const found = brought
      ? await repository.broughtVersion(name, Number(version), await tickets.files(ticket))
      : await repository.version(name, Number(version), fingerprint);
    const files = await found.fetch();
    return {
      bytes: await bytesBelow(files.versionDirectory),
      async start() {
        const began = performance.now();
        const source = { name, version, config, fingerprint, fetch: () => Promise.resolve(files) };
        const running = await start(source);
        running.statistics.loaded((performance.now() - began) / 1000);
        return running;
      },
    };
  };
}

async function bytesBelow(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true });
  const sizes = await Promise.all(
    names.map(async (name) => (await stat(path.join(folder, name))).size),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
