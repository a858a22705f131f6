import type { RequestTrace } from "../protocol/request-trace.ts";
import type { Logger } from "./logger.ts";
import { TraceFile } from "./trace-file.ts";
import { TraceRecord } from "./trace-record.ts";
import type { TraceScope } from "./trace-scope.ts";
import type { TraceOutput } from "./tracer.ts";

/** Traces that fill a file before their number does. */
const fullBytes = 16 * 1024 * 1024;

/**
 * Traces in files of the reference's format: all in one, or, where a log frequency or a count is set, so many at a time in
 * files with numbers.
 */
export class TraceFiles implements TraceOutput {
  readonly #file: TraceFile;
  readonly #groups = new Map<TraceScope, TraceGroup>();
  #lastId = 0;

  constructor(path: string, log: Logger) {
    this.#file = new TraceFile(path, log);
  }

  begin(scope: TraceScope): RequestTrace | undefined {
    if (!scope.take()) return undefined;
    let group = this.#groups.get(scope);
    if (!group) this.#groups.set(scope, (group = new TraceGroup(scope, this.#file)));
    return group.begin(() => ++this.#lastId);
  }

  resume(): undefined {}

  ended(scope: TraceScope): void {
    this.#groups.get(scope)?.end();
    this.#groups.delete(scope);
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

/** The traces of one scope that wait until their file is full. */
class TraceGroup {
  readonly #scope: TraceScope;
  readonly #file: TraceFile;
  readonly #logFrequency: number;
  readonly #gathers: boolean;
  #traces: string[] = [];
  #bytes = 0;
  #open = 0;
  #ended = false;

  constructor(scope: TraceScope, file: TraceFile) {
    const { logFrequency, count } = scope.values;
    this.#scope = scope;
    this.#file = file;
    this.#logFrequency = logFrequency;
    this.#gathers = logFrequency > 0 || count >= 0;
  }

  begin(nextId: () => number): RequestTrace {
    this.#open++;
    const { level } = this.#scope.values;
    return new TraceRecord({ level, nextId, done: (json) => this.#done(json) });
  }

  /** Writes what is there; what comes later is written as it comes. */
  end(): void {
    this.#ended = true;
    if (this.#traces.length > 0) this.#write(this.#logFrequency > 0);
  }

  #done(json: string): void {
    this.#open--;
    if (json !== "") {
      this.#traces.push(json);
      this.#bytes += json.length;
    }
    if (this.#traces.length === 0) return;
    if (!this.#gathers) this.#write(false);
    else if (this.#isFull()) this.#write(true);
    else if (this.#ended) this.#write(this.#logFrequency > 0);
  }

  #isFull(): boolean {
    if (this.#bytes >= fullBytes || (this.#scope.exhausted && this.#open === 0)) return true;
    return this.#logFrequency > 0 && this.#traces.length >= this.#logFrequency;
  }

  #write(toFileOfItsOwn: boolean): void {
    const json = this.#traces.join(",");
    this.#traces = [];
    this.#bytes = 0;
    if (toFileOfItsOwn) this.#file.addFile(json);
    else this.#file.add(json);
  }
}
