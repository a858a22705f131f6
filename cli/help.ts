import { hasUseFor } from "./command-flags.ts";
import { environmentName } from "./environment.ts";
import { flagGroups } from "./flag-table.ts";
import type { Flag } from "./flag.ts";

const indent = 6;

/** What `tidepool --help` prints. */
export const programHelp = `Usage: tidepool <command> [flags]

Commands
  serve        serve the models of a repository to Triton / KServe v2 clients, in one process
  gateway      answer clients from pool workers behind a queue in Redis
  pool         be one of those pool workers
  autoscaler   make pool workers come and go with the requests
  dev          all of it on this machine, with a Redis of its own
  keys         make, limit, rotate and revoke the API keys that callers show
  push         bring a version of a model to a server

Flags
  --help, --version

tidepool <command> --help lists its flags.
`;

/**
 * What `tidepool <command> --help` prints.
 *
 * @param width columns of the terminal
 */
export function commandHelp(command: string, width: number): string {
  const lines = [
    `Usage: tidepool ${command} ${usage(command)} [flags]`,
    "",
    `Every flag is an environment variable, too: --http-port is ${environmentName("http-port")}.`,
    "The command line wins; several values of one flag stand between semicolons.",
  ];
  for (const [title, flags] of flagGroups) {
    const working = Object.entries(flags).filter(
      ([name, flag]) => flag.status.kind === "works" && hasUseFor(command, name),
    );
    if (working.length > 0) lines.push("", title);
    for (const [name, flag] of working) lines.push(...describe(name, flag, width));
  }
  if (["keys", "push"].includes(command)) return `${lines.join("\n")}\n`;
  lines.push("", "Accepted, so that commands written for Triton start");
  for (const [name, flag] of flagGroups.flatMap(([, flags]) => Object.entries(flags))) {
    if (flag.status.kind !== "works") lines.push(...describe(name, flag, width));
  }
  return `${lines.join("\n")}\n`;
}

function usage(command: string): string {
  if (command === "keys") return "create|list|limit|rotate|revoke|publish [id]";
  if (command === "push") return "<folder> [--version=<n>]";
  return "--model-repository=<folder or s3://bucket/prefix>";
}

function describe(name: string, flag: Flag, width: number): string[] {
  const value = flag.type.name === "boolean" ? "[=true|false]" : `=<${flag.type.name}>`;
  const again = flag.repeatable && flag.status.kind === "works" ? " ..." : "";
  return [`  --${name}${value}${again}`, ...wrap(explain(flag), width - indent)];
}

function explain({ help, defaultText, status }: Flag): string {
  if (status.kind === "no effect") return `No effect: ${status.why}.`;
  if (status.kind === "refused") return `Refused: ${status.why}.`;
  if (status.kind === "replaced") return `Old spelling of --${status.by}.`;
  return defaultText === "" ? help : `${help} Default: ${defaultText}`;
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(" ".repeat(indent) + line);
      line = "";
    }
    line += line === "" ? word : ` ${word}`;
  }
  return [...lines, " ".repeat(indent) + line];
}
