/** Where progress is shown: a terminal, or something that reads lines. */
export interface ProgressOutput {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const redrawMilliseconds = 100;
const barColumns = 30;
/** Between two lines, for those who read lines, and before the first. */
const stepPercent = 10;
const smallBytes = 4e6;

/** Shows how far something is: a bar that is drawn over itself on a terminal, a line now and then elsewhere. */
export class Progress {
  readonly #output: ProgressOutput;
  readonly #what: string;
  readonly #totalBytes: number;
  readonly #now: () => number;
  readonly #startedAt: number;
  readonly #startBytes: number;
  #bytes: number;
  #shownAt = -Infinity;
  #shownPercent = 0;

  /** @param startBytes that were there before @param now a monotonic clock, in milliseconds */
  constructor(
    output: ProgressOutput,
    what: string,
    bytes: { readonly total: number; readonly start?: number },
    now: () => number = () => performance.now(),
  ) {
    this.#output = output;
    this.#what = what;
    this.#totalBytes = bytes.total;
    this.#startBytes = this.#bytes = bytes.start ?? 0;
    this.#shownPercent = this.#percent;
    this.#now = now;
    this.#startedAt = now();
  }

  /** So many more, or fewer when some have to be sent again. */
  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#output.isTTY) this.#draw();
    else this.#tell();
  }

  /** A line that is not about how far it is. */
  say(line: string): void {
    this.#output.write(`${this.#output.isTTY ? clear : ""}${line}\n`);
    this.#shownAt = -Infinity;
  }

  /** It is over, one way or another. */
  end(): void {
    if (this.#output.isTTY) this.#output.write(clear);
  }

  get #percent(): number {
    const done = this.#totalBytes === 0 ? 1 : this.#bytes / this.#totalBytes;
    return Math.floor(100 * Math.min(1, Math.max(0, done)));
  }

  #draw(): void {
    const now = this.#now();
    if (now - this.#shownAt < redrawMilliseconds) return;
    this.#shownAt = now;
    const full = Math.round((this.#percent * barColumns) / 100);
    const bar = "█".repeat(full) + "░".repeat(barColumns - full);
    const line = `${this.#what} ${bar} ${this.#numbers(now)}`;
    this.#output.write(`${clear}${line.slice(0, this.#output.columns || 100)}`);
  }

  #tell(): void {
    if (this.#totalBytes < smallBytes || this.#percent < this.#shownPercent + stepPercent) return;
    this.#shownPercent = this.#percent - (this.#percent % stepPercent);
    this.#output.write(`${this.#what}: ${this.#numbers(this.#now())}\n`);
  }

  #numbers(now: number): string {
    const seconds = Math.max(0.001, (now - this.#startedAt) / 1000);
    const rate = (this.#bytes - this.#startBytes) / seconds;
    const left = rate > 0 ? Math.ceil((this.#totalBytes - this.#bytes) / rate) : undefined;
    const sizes = `${megabytes(this.#bytes)} of ${megabytes(this.#totalBytes)} MB`;
    const more = left === undefined ? "" : `, ${megabytes(rate)} MB/s, ${left} s left`;
    return `${this.#percent} % (${sizes}${more})`;
  }
}

/** Begins the line anew. */
const clear = "\r\u001b[2K";

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}
