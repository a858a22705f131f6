import { say } from "./progress.js";

/**
 * Runs a command of the set-up to its end: its result is the exit code, and a failure is one readable message.
 *
 * @param {() => Promise<number>} work
 */
export async function command(work) {
  try {
    process.exitCode = await work();
  } catch (error) {
    say(`failed: ${error.message}`);
    if (error.cause !== undefined) say(`because: ${error.cause.message ?? error.cause}`);
    say("nothing is lost: the same command starts again where this one stopped");
    process.exitCode = 1;
  }
}
