import type { RunningVersion } from "../running-version.ts";

/** Keeps versions from ending while ensembles that still have requests need them. */
export class VersionHolds {
  readonly #counts = new Map<RunningVersion, number>();
  readonly #freed = new Map<RunningVersion, () => void>();

  hold(versions: readonly RunningVersion[]): void {
    for (const version of versions) this.#counts.set(version, (this.#counts.get(version) ?? 0) + 1);
  }

  release(versions: readonly RunningVersion[]): void {
    for (const version of versions) {
      const left = (this.#counts.get(version) ?? 0) - 1;
      if (left > 0) {
        this.#counts.set(version, left);
        continue;
      }
      this.#counts.delete(version);
      this.#freed.get(version)?.();
    }
  }

  /** Resolves when nobody holds the version; whoever holds it then holds one that has ended. */
  async free(version: RunningVersion): Promise<void> {
    if (!this.#counts.has(version)) return;
    await new Promise<void>((resolve) => this.#freed.set(version, resolve));
    this.#freed.delete(version);
  }
}
