import { openSync } from "node:fs";
import { pino } from "pino";
import type { LogDestination } from "./logger.ts";

/**
 * Where log lines go: a file if there is one, a person if one looks at the terminal, and else whatever reads standard
 * output, as one JSON object a line. Opening a file that cannot be written throws the system's error.
 */
export async function logDestinations(): Promise<(logFile: string) => LogDestination> {
  const console = process.stdout.isTTY ? await readableConsole() : jsonLines(1);
  return (logFile) => (logFile === "" ? console : jsonLines(openSync(logFile, "a")));
}

/** Written at once: the last lines before a crash are those that matter. */
function jsonLines(to: number): LogDestination {
  const destination = pino.destination({ dest: to, sync: true });
  // A full disk or a reader that left costs lines, never the server.
  destination.on("error", () => undefined);
  return destination;
}

async function readableConsole(): Promise<LogDestination> {
  // Only a terminal pays for loading the formatter.
  const { default: pretty } = await import("pino-pretty");
  return pretty({
    sync: true,
    destination: 1,
    translateTime: "SYS:HH:MM:ss.l",
    ignore: "verbose",
    singleLine: true,
  });
}
