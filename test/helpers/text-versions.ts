import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { ModelStatisticsRecorder } from "../../serving/model-statistics.ts";
import type { RunningVersion, StartVersion, VersionSource } from "../../serving/running-version.ts";
import type { LocalVersion } from "../../repository/model-store.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";

/** A version whose model file is a text: it knows the text and whether it has been closed. */
export interface TextVersion extends RunningVersion {
  readonly files: LocalVersion;
  readonly text: string;
  closed: boolean;
}

/** Starts versions from text files; a file that says "broken" fails, and a test can hold loads and ends back. */
export class TextVersions {
  readonly started: TextVersion[] = [];
  /** Loads wait for this one, if it is there. */
  loading: Promise<void> | undefined;
  /** Versions that close wait for this one: their requests in flight. */
  inflight: Promise<void> | undefined;
  /** The most loads that ever ran at once. */
  mostAtOnce = 0;
  /** How many loads were begun, whatever became of them. */
  attempts = 0;
  #atOnce = 0;

  readonly start: StartVersion = async (source) => {
    this.attempts++;
    const gate = this.loading;
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#atOnce);
    try {
      const files = await source.fetch();
      try {
        const text = await readFile(modelFile(files), "utf8");
        await gate;
        if (text.includes("broken"))
          throw new InferenceError(StatusCode.Internal, `${source.name} is ${text}`);
        return this.#version(source, files, text);
      } catch (error) {
        await files.release();
        throw error;
      }
    } finally {
      this.#atOnce--;
    }
  };

  /** True while the file a version was started from is there. */
  async hasFiles(version: TextVersion): Promise<boolean> {
    return access(modelFile(version.files)).then(
      () => true,
      () => false,
    );
  }

  #version(
    { name, version, config }: VersionSource,
    files: LocalVersion,
    text: string,
  ): TextVersion {
    const inflight = this.inflight;
    const running: TextVersion = {
      files,
      text,
      closed: false,
      model: { name, version, config },
      scheduler: { inflight: 0, enqueue: () => {}, stop: () => Promise.resolve() },
      healthy: true,
      statistics: new ModelStatisticsRecorder({ name, version, tags: {} }),
      close: async () => {
        await inflight;
        await files.release();
        running.closed = true;
      },
    };
    this.started.push(running);
    return running;
  }
}

function modelFile({ versionDirectory }: LocalVersion): string {
  return join(versionDirectory, "model.onnx");
}
