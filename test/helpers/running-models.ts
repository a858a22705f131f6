import type { RunningModels } from "../../serving/serving-engine.ts";
import type { RunningVersion } from "../../serving/running-version.ts";
import { ModelStatisticsRecorder } from "../../serving/model-statistics.ts";
import { systemClock } from "../../serving/clock.ts";
import { directScheduler } from "../../pool/scheduler/direct-scheduler.ts";
import type { InstanceGroup } from "../../pool/instance/model-instance.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";

/** A version that runs on the given instances. */
export function runningVersion(model: ServedModel, instances: InstanceGroup): RunningVersion {
  const statistics = new ModelStatisticsRecorder({ ...model, tags: {} });
  const scheduler = directScheduler({ instances, statistics, clock: systemClock });
  const close = (): Promise<void> => scheduler.stop();
  return { model, scheduler, healthy: instances.healthy, statistics, close };
}

/** Versions that the test puts in and takes out. */
export class ModelsInMemory implements RunningModels {
  readonly loaded: RunningVersion[];
  closing = false;
  closed = 0;

  constructor(...versions: RunningVersion[]) {
    this.loaded = versions;
  }

  find(name: string, version: string): RunningVersion {
    if (this.closing)
      throw new InferenceError(StatusCode.Unavailable, "the server is shutting down");
    const found = this.loaded.findLast(
      ({ model }) => model.name === name && (version === "" || model.version === version),
    );
    if (found) return found;
    const text = `Request for unknown model: '${name}' is not found`;
    throw new InferenceError(StatusCode.NotFound, text);
  }

  versions(name: string): readonly RunningVersion[] {
    return this.loaded.filter(({ model }) => model.name === name);
  }

  running(): readonly RunningVersion[] {
    return this.loaded;
  }

  ready(): boolean {
    return this.loaded.length > 0;
  }

  index(): Promise<[]> {
    return Promise.resolve([]);
  }

  load(): Promise<void> {
    return Promise.resolve();
  }

  activate(): Promise<void> {
    return Promise.resolve();
  }

  probe(): Promise<void> {
    return Promise.resolve();
  }

  unload(): Promise<void> {
    return Promise.resolve();
  }

  async close(): Promise<void> {
    this.closing = true;
    await Promise.all(this.loaded.map((version) => version.close()));
    this.closed++;
  }
}
