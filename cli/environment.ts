import { flagTable, findFlag } from "./flag-table.ts";

/** The environment variable of a flag: `--http-port` is TIDEPOOL_HTTP_PORT. */
export function environmentName(flag: string): string {
  return `TIDEPOOL_${flag.toUpperCase().replaceAll("-", "_")}`;
}

/** What the environment sets, as if it stood on the command line; several values of one flag stand between semicolons. */
export function flagsFromEnvironment(
  environment: NodeJS.ProcessEnv,
): Map<string, readonly string[]> {
  const given = new Map<string, readonly string[]>();
  for (const name of Object.keys(flagTable)) {
    const value = environment[environmentName(name)];
    if (value === undefined || value === "" || isServiceLink(value)) continue;
    given.set(name, findFlag(name)?.repeatable ? value.split(";") : [value]);
  }
  return given;
}

/**
 * Kubernetes gives pods TIDEPOOL_HTTP_PORT=tcp://10.0.0.7:8000 when a service is named tidepool-http: not meant for us.
 */
function isServiceLink(value: string): boolean {
  return /^(?:tcp|udp|sctp):\/\//u.test(value);
}
