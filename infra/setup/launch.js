import { spawn } from "node:child_process";
import { constants } from "node:os";
import { environment, nodePath } from "./node.js";
import { root } from "./paths.js";

const passedOn = ["SIGINT", "SIGTERM", "SIGHUP"];

/** glibc keeps memory for each of many threads to themselves; with two of these arenas a server holds 15 MB less. */
const fewArenas = { MALLOC_ARENA_MAX: "2" };

/**
 * Runs a script of this repository with the right node, as if it were this process: same terminal, and the signals that
 * ask for an end reach it.
 *
 * @param {string[]} args the script and its arguments
 * @param {{ cwd?: string }} [options] default: the repository
 * @returns {Promise<number>} its exit code; 128 and the signal's number when a signal ended it, as shells count
 */
export function launch(args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(nodePath(), args, {
      cwd: options.cwd ?? root,
      env: { ...fewArenas, ...environment() },
      stdio: "inherit",
    });
    const pass = (signal) => child.kill(signal);
    for (const signal of passedOn) process.on(signal, pass);
    child.on("error", reject);
    child.on("exit", (code, signal) => {
      for (const name of passedOn) process.off(name, pass);
      resolve(signal === null ? code : 128 + constants.signals[signal]);
    });
  });
}
