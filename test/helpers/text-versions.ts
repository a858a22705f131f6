import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { ModelStatisticsRecorder } from "../../pool/model-statistics.ts";
import type { RunningVersion, StartVersion, VersionSource } from "../../pool/running-version.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";

/** A version whose model file is a text: it knows the text and whether it has been closed. */
export interface TextVersion extends RunningVersion {
  readonly source: VersionSource;
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
      const text = await readFile(join(source.versionDirectory, "model.onnx"), "utf8");
      await gate;
      if (text.includes("broken"))
        throw new InferenceError(StatusCode.Internal, `${source.name} is ${text}`);
      return this.#version(source, text);
    } finally {
      this.#atOnce--;
    }
  };

  /** True while the file a version was started from is there. */
  async hasFiles(version: TextVersion): Promise<boolean> {
    const path = join(version.source.versionDirectory, "model.onnx");
    return access(path).then(
      () => true,
      () => false,
    );
  }

  #version(source: VersionSource, text: string): TextVersion {
    const { name, version, config } = source;
    const inflight = this.inflight;
    const running: TextVersion = {
      source,
      text,
      closed: false,
      model: { name, version, config },
      scheduler: { inflight: 0, enqueue: () => {}, stop: () => Promise.resolve() },
      instances: {
        instances: [],
        healthy: true,
        next: () => undefined,
        onRoom: () => {},
        close: () => Promise.resolve(),
      },
      statistics: new ModelStatisticsRecorder({ name, version, tags: {} }),
      close: async () => {
        await inflight;
        running.closed = true;
      },
    };
    this.started.push(running);
    return running;
  }
}
