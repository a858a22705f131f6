import { flagTable, findFlag } from "./flag-table.ts";

const prefix = "TIDEPOOL_";

/** Flags of no variable: a version is that of one push, and a TIDEPOOL_VERSION most likely that of the program. */
export const commandLineOnly: ReadonlySet<string> = new Set(["version"]);

/** The environment variable of a flag: `--http-port` is TIDEPOOL_HTTP_PORT. */
export function environmentName(flag: string): string {
  return `${prefix}${flag.toUpperCase().replaceAll("-", "_")}`;
}

/** What the environment sets, as if it stood on the command line; several values of one flag stand between semicolons. */
export function flagsFromEnvironment(
  environment: NodeJS.ProcessEnv,
): Map<string, readonly string[]> {
  const given = new Map<string, readonly string[]>();
  for (const name of Object.keys(flagTable)) {
    if (commandLineOnly.has(name)) continue;
    const value = environment[environmentName(name)];
    if (value === undefined || value === "" || isServiceLink(value)) continue;
    given.set(name, findFlag(name)?.repeatable ? value.split(";") : [value]);
  }
  return given;
}

/** A warning for each variable that looks like a flag's and is none: most likely a typing error. */
export function environmentWarnings(environment: NodeJS.ProcessEnv): readonly string[] {
  const known = new Set(Object.keys(flagTable).map(environmentName));
  return Object.entries(environment)
    .filter(([name, value = ""]) => name.startsWith(prefix) && !isServiceVariable(name, value))
    .filter(([name]) => !known.has(name))
    .map(([name]) => `${name} has no effect: it is the variable of no flag`);
}

function isServiceVariable(name: string, value: string): boolean {
  return /_SERVICE_(?:HOST|PORT)|_PORT_\d+_(?:TCP|UDP|SCTP)/u.test(name) || isServiceLink(value);
}

/**
 * Kubernetes gives pods TIDEPOOL_HTTP_PORT=tcp://10.0.0.7:8000 when a service is named tidepool-http: not meant for us.
 */
function isServiceLink(value: string): boolean {
  return /^(?:tcp|udp|sctp):\/\//u.test(value);
}
