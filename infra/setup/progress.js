import { spawn } from "node:child_process";

const tellAfterMilliseconds = 10_000;
const signals = ["SIGINT", "SIGTERM", "SIGHUP"];

/** Says one line about the set-up, on standard error, so that a command's own output stays clean. */
export function say(text) {
  process.stderr.write(`set-up: ${text}\n`);
}

/**
 * Does one part of the set-up, and says that it does, that it still does, and how long it took.
 *
 * @param {string} what the part, as in "installing the packages"
 * @param {() => Promise<void>} work
 */
export async function step(what, work) {
  const started = Date.now();
  const seconds = () => `${((Date.now() - started) / 1000).toFixed(0)} s`;
  say(`${what} ...`);
  const ticker = setInterval(() => say(`${what}, ${seconds()} so far`), tellAfterMilliseconds);
  try {
    await work();
    say(`${what}: done in ${seconds()}`);
  } finally {
    clearInterval(ticker);
  }
}

/**
 * Runs a program quietly; resolves with what it said, and rejects with it when it fails.
 *
 * @param {string} program
 * @param {string[]} args
 * @param {import("node:child_process").SpawnOptions} [options]
 * @returns {Promise<string>}
 */
export function execute(program, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    // A set-up that is interrupted leaves nothing behind that goes on installing.
    const end = (signal) => {
      child.kill(signal);
      process.exit(1);
    };
    for (const signal of signals) process.once(signal, end);
    child.on("close", () => signals.forEach((signal) => process.off(signal, end)));
    let said = "";
    const listen = (chunk) => (said += chunk);
    child.stdout.on("data", listen);
    child.stderr.on("data", listen);
    child.on("error", (cause) => reject(new Error(`${program} cannot be started`, { cause })));
    child.on("close", (code) => {
      if (code === 0) resolve(said);
      else reject(new Error(`${[program, ...args].join(" ")} failed (${code}):\n${excerpt(said)}`));
    });
  });
}

/** The beginning and the end: npm tells the reason first, pip tells it last. */
function excerpt(said) {
  const lines = said.trim().split("\n");
  return lines.length <= 24
    ? lines.join("\n")
    : [...lines.slice(0, 12), "...", ...lines.slice(-12)].join("\n");
}
