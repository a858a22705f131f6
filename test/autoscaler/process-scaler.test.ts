import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import type { WorkerExit } from "../../autoscaler/crash-backoff.ts";
import { ProcessScaler, type NewPoolWorker } from "../../autoscaler/process-scaler.ts";
import { eventually } from "../helpers/eventually.ts";
import { describeScaler, reason, soon } from "./scaler-cases.ts";

/** Pool workers as node scripts: they say when they are there, and end when their standard input does. */
const worker = `
process.stdin.resume();
process.stdin.on("end", () => process.exit(7));
process.on("SIGTERM", () => process.exit(0));
console.log("ready " + process.pid);
console.error("a word");
`;
const deaf = worker.replace("process.exit(0)", "console.log('deaf')");

/** Everything that one scaler tells. */
class Stand {
  readonly exits: WorkerExit[] = [];
  readonly lines: string[] = [];
  readonly started: NewPoolWorker[] = [];
  readonly scaler: ProcessScaler;

  constructor(script: string, command = process.execPath, graceMilliseconds = 60_000) {
    this.scaler = new ProcessScaler({
      command: (told) => {
        this.started.push(told);
        return { command, args: ["-e", script], env: { ...process.env, WORKER_ID: told.id } };
      },
      graceMilliseconds,
      onExit: (exit) => this.exits.push(exit),
      onLine: (id, stream, line) => this.lines.push(`${id} ${stream} ${line}`),
    });
  }
}

/** Resolves with the process ids of so many workers that are up. */
function ready({ lines }: Stand, count: number): Promise<number[]> {
  return eventually(() => {
    const ids = lines.flatMap((line) => /stdout ready (?<id>\d+)/u.exec(line)?.[1] ?? []);
    expect(ids).toHaveLength(count);
    return ids.map(Number);
  });
}

function alive(processId: number): boolean {
  try {
    return process.kill(processId, 0);
  } catch {
    return false;
  }
}

describeScaler("ProcessScaler", async () => {
  const { scaler } = new Stand(worker);
  return {
    scaler,
    running: () => scaler.processIds().filter(alive).length,
    release: async () => {},
  };
});

describe("ProcessScaler", () => {
  let stand = new Stand(worker);

  afterEach(() => stand.scaler.close(AbortSignal.abort()));

  it("tells a worker who it is and why it is there, and us what it writes", async () => {
    stand = new Stand(`console.log(process.env.WORKER_ID);${worker}`);
    await stand.scaler.scaleTo(1, { demandSeenAt: 5, decidedAt: 7 });
    const [processId] = await ready(stand, 1);
    const [told] = stand.started;
    expect(told).toMatchObject({ demandSeenAt: 5, decidedAt: 7 });
    await eventually(() => expect(stand.lines).toContain(`${told?.id} stderr a word`));
    expect(stand.lines).toContain(`${told?.id} stdout ${told?.id}`);
    expect(stand.scaler.processIds()).toEqual([processId]);
  });

  it("asks the newest to end, and the idlest before it", async () => {
    stand = new Stand(worker);
    await stand.scaler.scaleTo(4, reason);
    await ready(stand, 4);
    const ids = stand.started.map(({ id }) => id);
    const inFlight = new Map(ids.map((id, i) => [id, i === 1 ? 0 : 5]));
    await stand.scaler.scaleTo(2, { ...reason, inFlight });
    await eventually(() => expect(stand.exits).toHaveLength(2));
    expect(new Set(stand.exits.map(({ id }) => id))).toEqual(new Set([ids[1], ids[3]]));
    expect(stand.exits[0]).toMatchObject({ code: 0, signal: null, expected: true });
  });

  it("tells of a worker that ends by itself, and counts it no more", async () => {
    stand = new Stand(worker);
    await stand.scaler.scaleTo(2, reason);
    const [victim] = await ready(stand, 2);
    process.kill(victim ?? 0, "SIGKILL");
    await eventually(() => expect(stand.exits).toHaveLength(1));
    expect(stand.exits[0]).toMatchObject({ code: null, signal: "SIGKILL", expected: false });
    expect(stand.exits[0]?.lifetimeMilliseconds).toBeGreaterThan(0);
    expect(stand.scaler.size()).toBe(1);
  });

  it("tells of a command that cannot be run", async () => {
    stand = new Stand(worker, "/no/such/command");
    await stand.scaler.scaleTo(1, reason);
    await eventually(() => expect(stand.exits).toHaveLength(1));
    expect(stand.exits[0]).toMatchObject({ code: null, expected: false });
    expect(stand.exits[0]?.error).toMatchObject({ code: "ENOENT" });
    expect(stand.scaler.size()).toBe(0);
  });

  it("kills a worker that does not end in time", async () => {
    stand = new Stand(deaf, process.execPath, 100);
    await stand.scaler.scaleTo(1, reason);
    await ready(stand, 1);
    await stand.scaler.scaleTo(0, reason);
    expect(stand.scaler.size()).toBe(0);
    await eventually(() =>
      expect(stand.exits[0]).toMatchObject({ signal: "SIGKILL", expected: true }),
    );
    expect(stand.lines.some((line) => line.endsWith("deaf"))).toBe(true);
  });

  it("starts another worker while an old one still drains", async () => {
    stand = new Stand(deaf);
    await stand.scaler.scaleTo(1, reason);
    await ready(stand, 1);
    await stand.scaler.scaleTo(0, reason);
    await stand.scaler.scaleTo(1, reason);
    await ready(stand, 2);
    expect(stand.scaler.size()).toBe(1);
    expect(stand.scaler.processIds()).toHaveLength(2);
  });

  it("closes when all workers have ended, and kills those left when the signal comes", async () => {
    stand = new Stand(worker);
    await stand.scaler.scaleTo(2, reason);
    const polite = await ready(stand, 2);
    await stand.scaler.close(soon());
    expect(stand.exits.map(({ code }) => code)).toEqual([0, 0]);
    expect(polite.filter(alive)).toEqual([]);
    stand = new Stand(deaf);
    await stand.scaler.scaleTo(1, reason);
    await ready(stand, 1);
    await stand.scaler.close(AbortSignal.timeout(50));
    expect(stand.exits[0]).toMatchObject({ signal: "SIGKILL" });
  });

  it("leaves no worker behind when its own process is killed", async () => {
    const module = new URL("../../autoscaler/process-scaler.ts", import.meta.url);
    const parent = spawn(
      process.execPath,
      [
        "--input-type=module",
        "-e",
        `import { ProcessScaler } from ${JSON.stringify(module.href)};
         const scaler = new ProcessScaler({
           command: () => ({ command: process.execPath, args: ["-e", ${JSON.stringify(worker)}], env: process.env }),
           graceMilliseconds: 1000, onExit: () => {}, onLine: (id, stream, line) => console.log(line),
         });
         await scaler.scaleTo(1, { demandSeenAt: 0, decidedAt: 0 });`,
      ],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    let written = "";
    parent.stdout.on("data", (bytes: Buffer) => (written += bytes.toString()));
    const processId = await eventually(() => {
      const [, id] = /ready (\d+)\n/u.exec(written) ?? [];
      expect(id).toBeDefined();
      return Number(id);
    });
    expect(alive(processId)).toBe(true);
    const ended = once(parent, "exit");
    parent.kill("SIGKILL");
    await ended;
    await eventually(() => expect(alive(processId)).toBe(false));
  });
});
