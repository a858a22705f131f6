import type { ChildProcess } from "node:child_process";
import { once } from "node:events";

const patienceMilliseconds = 10_000;

/** Asks a server to end and waits for that; one that does not is killed. */
export async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const killer = setTimeout(() => child.kill("SIGKILL"), patienceMilliseconds);
  await exited;
  clearTimeout(killer);
}
