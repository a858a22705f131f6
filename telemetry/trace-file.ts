import { type FileHandle, mkdir, open, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Logger } from "./logger.ts";

/** Of what is waiting to be written, and in one file of several; a disk that does not keep up costs traces. */
const maxWaitingBytes = 64 * 1024 * 1024;
/** Traces of the one file are gathered so long, so that many share a write. */
const gatherMilliseconds = 1000;

/** Writes traces to files as JSON arrays, one write after the other. The one file is a whole array after every write. */
export class TraceFile {
  readonly #path: string;
  readonly #log: Logger;
  #gathered: string[] = [];
  #timer: NodeJS.Timeout | undefined;
  #file: FileHandle | undefined;
  #position = 0;
  #nextIndex = 0;
  #waitingBytes = 0;
  #writing: Promise<void> = Promise.resolve();
  #failing = false;
  #closed = false;

  constructor(file: string, log: Logger) {
    this.#path = file;
    this.#log = log;
  }

  /** Adds a trace to the one file. */
  add(json: string): void {
    if (!this.#admit(json.length)) return;
    this.#gathered.push(json);
    this.#timer ??= setTimeout(() => this.#flush(), gatherMilliseconds).unref();
  }

  /** Puts traces into a file of their own, whose name ends in the next number. */
  addFile(json: string): void {
    if (!this.#admit(json.length)) return;
    const file = `${this.#path}.${this.#nextIndex++}`;
    this.#enqueue(json.length, async () => {
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, `[${json}]`);
    });
  }

  /** Resolves when everything is written; what comes later is lost. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#flush();
    await this.#writing;
    await this.#file?.close();
    this.#file = undefined;
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#gathered.length === 0) return;
    const json = this.#gathered.join(",");
    const bytes = this.#gathered.reduce((sum, { length }) => sum + length, 0);
    this.#gathered = [];
    this.#enqueue(bytes, () => this.#append(json));
  }

  async #append(json: string): Promise<void> {
    if (!this.#file) {
      await mkdir(path.dirname(this.#path), { recursive: true });
      this.#file = await open(this.#path, "w");
    }
    const text = Buffer.from(`${this.#position === 0 ? "[" : ","}${json}]`);
    await this.#file.write(text, 0, text.length, this.#position);
    // The next trace takes the place of the bracket.
    this.#position += text.length - 1;
  }

  #admit(bytes: number): boolean {
    if (this.#closed) return false;
    const admitted = this.#waitingBytes + bytes <= maxWaitingBytes;
    if (admitted) this.#waitingBytes += bytes;
    else this.#tell("traces are lost: their file is written too slowly");
    return admitted;
  }

  #enqueue(bytes: number, write: () => Promise<void>): void {
    this.#writing = this.#writeAfter(this.#writing, bytes, write);
  }

  async #writeAfter(
    earlier: Promise<void>,
    bytes: number,
    write: () => Promise<void>,
  ): Promise<void> {
    await earlier;
    try {
      await write();
      this.#failing = false;
    } catch (error) {
      this.#tell("traces are lost: their file cannot be written", error);
    }
    this.#waitingBytes -= bytes;
  }

  /** Once, until it goes well again. */
  #tell(message: string, err?: unknown): void {
    if (!this.#failing) this.#log.error(message, err === undefined ? {} : { err });
    this.#failing = true;
  }
}
