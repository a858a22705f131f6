import { enableCompileCache } from "node:module";
import path from "node:path";
import { setFlagsFromString } from "node:v8";
import manifest from "../package.json" with { type: "json" };
import { defaultCacheDirectory } from "./cache-directory.ts";
import { InferenceError } from "../protocol/error.ts";
import { flagsFromArguments, leadingWords } from "./arguments.ts";
import { checkSettings, requireModels } from "./check-settings.ts";
import { checkCommandFlags } from "./command-flags.ts";
import { commandHelp, programHelp } from "./help.ts";
import { checkPython } from "./python-options.ts";
import { type ReadSettings, readSettings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** Also gets the command line, for the processes that it starts. */
type Command = (read: ReadSettings, args: readonly string[]) => Promise<number>;

/** Imported when they are run, so that help, version and mistakes need not wait for a server's code. */
const commands: ReadonlyMap<string, () => Promise<Command>> = new Map([
  ["serve", async () => (await import("./serve.ts")).serve],
  ["gateway", async () => (await import("./gateway.ts")).gateway],
  ["pool", async () => (await import("./pool.ts")).pool],
  ["autoscaler", async () => (await import("./autoscaler.ts")).autoscaler],
  ["dev", async () => (await import("./dev.ts")).dev],
  ["keys", async () => (await import("./keys.ts")).keys],
  ["push", async () => (await import("./push.ts")).push],
]);

/** Who starts no pool worker needs no models. */
const modelless: ReadonlySet<string> = new Set(["autoscaler", "keys", "push"]);
/** Their command lines begin with words, and this is what is told of one that comes later. */
const wordy: ReadonlyMap<string, string> = new Map([
  ["keys", "; an id comes before the flags"],
  ["push", "; the folder comes before the flags"],
]);
/** Who needs an interpreter for Python models on its own machine. */
const modelful: ReadonlySet<string> = new Set(["serve", "pool", "dev"]);
const helps: ReadonlySet<string> = new Set(["--help", "-h"]);

/** The program `tidepool`: finds the command and ends with its exit code; 2 stands for a mistake in the flags. */
async function main([name, ...args]: readonly string[]): Promise<number> {
  if (name === "--version") return print(`tidepool ${manifest.version}\n`);
  if (name !== undefined && helps.has(name)) return print(programHelp);
  const find = commands.get(name ?? "");
  if (!find) {
    const given = name === undefined ? "no command" : `'${name}'`;
    const known = [...commands.keys()].join(", ");
    throw new UsageError(`given ${given}, expected one of ${known}; see tidepool --help`);
  }
  if (args.some((arg) => helps.has(arg)))
    return print(commandHelp(name ?? "", process.stdout.columns || 100));
  return (await find())(readCommand(name ?? "", args), args);
}

function readCommand(name: string, args: readonly string[]): ReadSettings {
  const flags = wordy.has(name) ? args.slice(leadingWords(args).length) : args;
  flagsFromArguments(flags, wordy.get(name));
  const read = readSettings(flags, process.env);
  checkCommandFlags(name, flags);
  // Who only sends something opens no port.
  if (name !== "push") checkSettings(read.settings);
  if (!modelless.has(name)) requireModels(read.settings);
  if (modelful.has(name)) checkPython(read.settings.python, process.env["PATH"]);
  return read;
}

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}

// Otherwise the whole heap is collected for every few dozen megabytes of tensors, which lie outside of it: that costs more
// than all else that is done for a tensor of a megabyte. With them collections of the newest objects are enough.
setFlagsFromString("--external-memory-accounted-in-global-limit");
setFlagsFromString("--heap-growing-percent=300");

// Halves the time to the first request: the sources are compiled once, not at every start, in no thread, in no child.
const compiled = enableCompileCache(path.join(defaultCacheDirectory(process.env), "compile-cache"));
if (compiled.directory !== undefined) process.env["NODE_COMPILE_CACHE"] ??= compiled.directory;

try {
  // Exits even if something is still open: a request that did not end in time must not keep the process.
  process.exit(await main(process.argv.slice(2)));
} catch (error) {
  if (!(error instanceof UsageError || error instanceof InferenceError)) throw error;
  process.stderr.write(`tidepool: ${error.message}\n`);
  process.exit(2);
}
