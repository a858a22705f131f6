import { enableCompileCache } from "node:module";
import path from "node:path";
import manifest from "../package.json" with { type: "json" };
import { defaultCacheDirectory } from "./cache-directory.ts";
import { InferenceError } from "../protocol/error.ts";
import { checkSettings } from "./check-settings.ts";
import { programHelp, serveHelp } from "./help.ts";
import { readSettings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** The program `tidepool`: finds the command and ends with its exit code; 2 stands for a mistake in the flags. */
async function main([command, ...args]: readonly string[]): Promise<number> {
  switch (command) {
    case "serve":
      if (args.includes("--help")) return print(serveHelp(process.stdout.columns || 100));
      return serve(args);
    case "--version":
      return print(`tidepool ${manifest.version}\n`);
    case "--help":
      return print(programHelp);
    case undefined:
      throw new UsageError("given no command, expected serve; see tidepool --help");
    default:
      throw new UsageError(`given '${command}', expected serve; see tidepool --help`);
  }
}

async function serve(args: readonly string[]): Promise<number> {
  const read = readSettings(args, process.env);
  checkSettings(read.settings);
  // Imported here, so that help, version and mistakes need not wait for the server's code.
  return (await import("./serve.ts")).serve(read);
}

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}

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
