import { randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { link, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";

const heartbeatMilliseconds = 2000;
/** An owner that says nothing for so long is dead, or has lost the disk. */
const silentMilliseconds = 30_000;

/**
 * A file that tells other processes, also those of other containers, that this one has something: it is kept fresh as long
 * as this process lives, and can carry a note.
 */
export class Claim<Note> {
  readonly #file: string;
  readonly #heartbeat: NodeJS.Timeout;
  #writing: Promise<void> = Promise.resolve();

  private constructor(file: string) {
    this.#file = file;
    this.#heartbeat = setInterval(() => {
      const now = new Date();
      utimes(file, now, now).catch(() => {});
    }, heartbeatMilliseconds);
    this.#heartbeat.unref();
  }

  /** Undefined when somebody who is alive has it. */
  static async take<Note>(file: string, note: Note): Promise<Claim<Note> | undefined> {
    const draft = draftOf(file);
    await writeFile(draft, textOf(note), { mode: 0o600 });
    try {
      // A link appears whole, and fails where there is one already.
      if (await linked(draft, file)) return new Claim(file);
      if (!(await removeDead(file)) || !(await linked(draft, file))) return undefined;
      return new Claim(file);
    } finally {
      await rm(draft, { force: true });
    }
  }

  /** Changes the note, for those who look. */
  note(note: Note): Promise<void> {
    this.#writing = this.#writing.catch(() => {}).then(() => this.#write(note));
    return this.#writing;
  }

  async release(): Promise<void> {
    clearInterval(this.#heartbeat);
    await this.#writing.catch(() => {});
    await rm(this.#file, { force: true });
  }

  async #write(note: Note): Promise<void> {
    const draft = draftOf(this.#file);
    await writeFile(draft, textOf(note), { mode: 0o600 });
    await rename(draft, this.#file);
  }
}

/** The note of a claim whose owner is alive, or undefined. */
export async function readClaim(file: string, now = Date.now()): Promise<unknown> {
  try {
    const { mtimeMs } = await stat(file);
    const claim: unknown = JSON.parse(await readFile(file, "utf8"));
    if (!isClaimText(claim)) return undefined;
    const dead = claim.place === place && !isRunning(claim.pid);
    return dead || now - mtimeMs > silentMilliseconds ? undefined : claim.note;
  } catch {
    return undefined;
  }
}

interface ClaimText {
  readonly pid: number;
  readonly place: string;
  readonly note: unknown;
}

/** Process numbers mean the same only where this is the same. */
const place = placeOfProcess();

function placeOfProcess(): string {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${boot} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return hostname();
  }
}

function textOf(note: unknown): string {
  return JSON.stringify({ pid: process.pid, place, note } satisfies ClaimText);
}

function draftOf(file: string): string {
  return `${file}.${randomUUID()}.draft`;
}

function isClaimText(value: unknown): value is ClaimText {
  return typeof value === "object" && value !== null && "pid" in value && "note" in value;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}

/** False when its owner is alive. */
async function removeDead(file: string): Promise<boolean> {
  if ((await readClaim(file)) !== undefined) return false;
  const aside = draftOf(file);
  try {
    await rename(file, aside);
    // Another process may have put its own claim there since: it gets it back.
    const alive = (await readClaim(aside)) !== undefined;
    if (alive) await linked(aside, file);
    return !alive;
  } catch {
    return true;
  } finally {
    await rm(aside, { force: true });
  }
}
