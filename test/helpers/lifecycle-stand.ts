import { type LifecycleOptions, ModelLifecycle } from "../../serving/lifecycle/model-lifecycle.ts";
import type { RepositoryIndexEntry } from "../../protocol/repository-index.ts";
import { LocalStore } from "../../repository/local-store.ts";
import { ModelRepository } from "../../repository/model-repository.ts";
import { ModelDirectory } from "./model-directory.ts";
import { SilentLog } from "./silent-log.ts";
import { type TextVersion, TextVersions } from "./text-versions.ts";

/** A lifecycle over two real directories, whose versions are texts. */
export class LifecycleStand {
  readonly directory = new ModelDirectory();
  readonly second = new ModelDirectory();
  readonly versions = new TextVersions();
  readonly log = new SilentLog();
  readonly lifecycle: ModelLifecycle;

  constructor(options: Partial<LifecycleOptions> = {}) {
    const stores = [this.directory, this.second].map(({ path }) => new LocalStore(path));
    this.lifecycle = new ModelLifecycle(
      new ModelRepository(stores),
      this.versions.start,
      {
        mode: "explicit",
        pollSeconds: 0.01,
        loadModels: [],
        loadThreadCount: 4,
        classifier: () => Promise.resolve((scheduler) => scheduler),
        ...options,
      },
      this.log,
    );
  }

  /** What the version that answers was made of, or why none does. */
  answer(name: string, version = ""): string {
    try {
      const running = this.lifecycle.find(name, version);
      const text = this.versions.started.find((started) => started === running)?.text;
      return `${running.model.version}: ${text}`;
    } catch (error) {
      return String(error);
    }
  }

  /** The last version that was started. */
  last(): TextVersion {
    const last = this.versions.started.at(-1);
    if (!last) throw new Error("nothing was started");
    return last;
  }

  async index(name: string): Promise<readonly RepositoryIndexEntry[]> {
    return (await this.lifecycle.index(false)).filter((line) => line.name === name);
  }

  async close(): Promise<void> {
    await this.lifecycle.close();
    this.directory.remove();
    this.second.remove();
  }
}
