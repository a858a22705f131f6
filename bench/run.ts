import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startRedis } from "../test/helpers/redis-server.ts";

const here = import.meta.dirname;
const peer = process.env["TRITON_PEER"] ?? path.join(here, "../.tidepool/peer");
const startMilliseconds = 120_000;

const models = [
  "identity_fp32",
  "mlp",
  "mlp_cached",
  "conv",
  "preproc_py",
  "ens_py",
  "identity_py",
];

interface Contender {
  readonly name: string;
  readonly process: ChildProcess;
  readonly readyMilliseconds: number;
  readonly readyMegabytes: number;
  /** HTTP, gRPC. */
  readonly ports: readonly [number, number];
}

/**
 * `npm run bench`: both shapes of this server beside the real reference server, as a Markdown table; parameters go to
 * compare.py.
 */
async function bench(parameters: readonly string[]): Promise<void> {
  const cache = await mkdtemp(path.join(os.tmpdir(), "tidepool-bench-"));
  await finished(spawn(path.join(here, "peer/setup-server.sh"), { stdio: "inherit" }));
  // Nothing here outlives the run: a Redis that writes each answer to disk would measure the disk.
  const redis = await startRedis();
  const contenders: Contender[] = [];
  try {
    contenders.push(
      await start("triton", [28000, 28001, 28002], path.join(here, "peer/start.sh"), [
        path.join(peer, "models/python"),
        "--model-control-mode=explicit",
      ]),
    );
    // Once to see the model files for the first time, and once as after any other start.
    const first = await startTidepool("serve", cache);
    print(started(first, "on its first start"));
    await end(first.process);
    contenders.push(await startTidepool("serve", cache));
    contenders.push(await startTidepool("dev", cache, redis.url));
    for (const contender of contenders) print(started(contender, "otherwise"));
    print(`Node ${process.version}; ${os.cpus().length} × ${os.cpus()[0]?.model}\n`);
    await compare(contenders, parameters);
    print("");
    for (const { name, process: child } of contenders) {
      print(`- ${name} after the run: ${await residentMegabytes(child)} MB resident`);
    }
  } finally {
    for (const { process: child } of contenders) await end(child);
    await redis.stop();
    await rm(cache, { recursive: true, force: true });
  }
}

/** One process, or the distributed shape: gateway, Redis, autoscaler and one pool worker that stays. */
function startTidepool(command: "serve" | "dev", cache: string, redisUrl = ""): Promise<Contender> {
  const name = command === "serve" ? "tidepool" : "pools";
  const ports =
    command === "serve" ? ([28100, 28101, 28102] as const) : ([28200, 28201, 28202] as const);
  return start(name, ports, process.execPath, [
    path.join(here, "../cli/main.ts"),
    command,
    ...(command === "dev" ? ["--pool-min-workers=1", `--redis-url=${redisUrl}`] : []),
    `--model-repository=${path.join(peer, "models/onnx")}`,
    `--local-cache-directory=${cache}`,
    "--model-control-mode=explicit",
    `--python=${path.join(peer, "venv/bin/python")}`,
    // As the reference's.
    "--cache-config=local,size=268435456",
  ]);
}

function started({ name, readyMilliseconds, readyMegabytes }: Contender, when: string): string {
  const time = `ready in ${Math.round(readyMilliseconds)} ms`;
  return `- ${name} ${when}: ${time}, with ${readyMegabytes} MB resident`;
}

async function start(
  name: string,
  [http, grpc, metrics]: readonly [number, number, number],
  program: string,
  parameters: readonly string[],
): Promise<Contender> {
  const ports = [`--http-port=${http}`, `--grpc-port=${grpc}`, `--metrics-port=${metrics}`];
  const loads = models.map((model) => `--load-model=${model}`);
  const began = performance.now();
  const child = spawn(program, [...parameters, ...ports, ...loads], { stdio: "ignore" });
  while (performance.now() - began < startMilliseconds && child.exitCode === null) {
    const answer = await fetch(`http://127.0.0.1:${http}/v2/health/ready`).catch(() => undefined);
    const readyMilliseconds = performance.now() - began;
    if (answer?.ok) {
      const readyMegabytes = await residentMegabytes(child);
      return { name, process: child, readyMilliseconds, readyMegabytes, ports: [http, grpc] };
    }
    await sleep(5);
  }
  child.kill("SIGKILL");
  throw new Error(`${name} did not become ready; run it by hand to see why`);
}

async function compare(contenders: readonly Contender[], parameters: readonly string[]) {
  const servers = contenders.map(
    ({ name, ports, process: child }) => `${name}=${ports.join(":")}:${child.pid}`,
  );
  const program = path.join(peer, "venv/bin/python");
  const script = path.join(here, "compare.py");
  await finished(spawn(program, [script, ...servers, ...parameters], { stdio: "inherit" }));
}

/** Resident memory of a process with all its children. */
async function residentMegabytes(child: ChildProcess): Promise<number> {
  let kibibytes = 0;
  for (const pid of await processes(child.pid ?? 0)) {
    const status = await readFile(`/proc/${pid}/status`, "utf8");
    kibibytes += Number(/VmRSS:\s+(\d+)/u.exec(status)?.[1] ?? 0);
  }
  return Math.round((kibibytes * 1024) / 1e6);
}

/** A process and all below it, whichever thread started them. */
async function processes(pid: number): Promise<readonly number[]> {
  const threads = await readdir(`/proc/${pid}/task`);
  const files = threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/children`, "utf8"));
  const children = (await Promise.all(files)).join(" ").split(/\s+/u).filter(Boolean).map(Number);
  return [pid, ...(await Promise.all(children.map(processes))).flat()];
}

async function finished(child: ChildProcess): Promise<void> {
  const [status] = await once(child, "exit");
  if (status !== 0) throw new Error(`${child.spawnfile} ended with ${status}`);
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill("SIGTERM");
  await Promise.race([once(child, "exit"), sleep(10_000).then(() => child.kill("SIGKILL"))]);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

await bench(process.argv.slice(2));
