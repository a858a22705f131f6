/**
 * Resolves with the name of the first signal that asks the process to end; later ones change nothing.
 *
 * @param withStdin the end of standard input asks for it, too
 */
export function endSignal(withStdin = false): Promise<NodeJS.Signals | "end of input"> {
  return new Promise((resolve) => {
    for (const name of ["SIGINT", "SIGTERM"] as const) process.on(name, resolve);
    if (withStdin) process.stdin.resume().once("end", () => resolve("end of input"));
  });
}

/** Ending takes a moment even when nothing is in flight. */
const shortestMilliseconds = 200;

/**
 * Does the work of ending, for at most so many seconds.
 *
 * @param end gets the signal that says when its time is over
 * @returns false when the time was over first
 */
export async function endWithin(
  seconds: number,
  end: (overdue: AbortSignal) => Promise<void>,
): Promise<boolean> {
  const overdue = new AbortController();
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(
    () => {
      overdue.abort();
      resolve(false);
    },
    Math.max(seconds * 1000, shortestMilliseconds),
  );
  try {
    return await Promise.race([end(overdue.signal).then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Ends the process now, whatever its threads do. process.exit() waits for each model that runs, however long that
 * takes; the system waits for none when another program takes this one's place.
 */
export function exitAtOnce(code: number): never {
  if (process.platform !== "win32") {
    process.execve?.("/bin/sh", ["sh", "-c", `exit ${code}`], {});
  }
  process.exit(code);
}
