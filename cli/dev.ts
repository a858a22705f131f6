import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { logDestinations } from "../telemetry/log-destination.ts";
import { childCommand } from "./child-command.ts";
import { startDevRedis } from "./dev-redis.ts";
import { endSignal } from "./drain.ts";
import { readPools } from "./pools.ts";
import type { ReadSettings } from "./settings.ts";
import { startLog } from "./start-log.ts";

/**
 * `tidepool dev`: the distributed shape on this machine, for trying and testing it: a Redis, a gateway, the autoscaler and
 * the pool workers that it starts. The gateway has every flag of serve.
 *
 * @returns the exit code of the gateway
 */
export async function dev(read: ReadSettings, args: readonly string[]): Promise<number> {
  // A mistake in the file is told once, and before anything runs.
  await readPools(read.settings);
  const log = await startLog(read, "dev");
  const asked = endSignal();
  const redis = read.settings.redisUrl === undefined ? await startDevRedis() : undefined;
  log.info("queues are in Redis", { redis: redis?.url ?? "as given" });
  // The children have the flags and the environment of this process: a URL from there stays out of the list of processes.
  const more = redis ? [`--redis-url=${redis.url}`] : [];
  const destinations = await logDestinations();
  const console = destinations("");
  const show = (line: string): void => {
    console.write(`${line}\n`);
  };
  const autoscaler = startChild(childCommand("autoscaler", args, more), show);
  const gateway = startChild(childCommand("gateway", args, more), show);
  const first = await Promise.race([asked, gateway.ended, autoscaler.ended, ended(redis?.child)]);
  log.info("ending", { because: typeof first === "string" ? first : "a part of it has ended" });
  // Those who ask end before those who answer.
  const code = await gateway.stop();
  await autoscaler.stop();
  await redis?.stop();
  return code;
}

interface Child {
  readonly ended: Promise<number>;
  /** Asks it to end; gives its exit code. */
  stop(): Promise<number>;
}

function startChild(
  { command, args }: ReturnType<typeof childCommand>,
  show: (line: string) => void,
): Child {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"], detached: true });
  // That a process does not read is told by its exit.
  child.stdin.on("error", () => {});
  // JSON, each line with the name of its process: shown as this process shows its own.
  createInterface(child.stdout).on("line", show);
  const over = ended(child);
  return {
    ended: over,
    stop() {
      child.kill("SIGTERM");
      return over;
    },
  };
}

/** Never, for no child. */
async function ended(child: ChildProcess | undefined): Promise<number> {
  if (!child) return new Promise(() => {});
  const [code] = await once(child, "exit");
  return typeof code === "number" ? code : 1;
}
