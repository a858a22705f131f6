import { homedir } from "node:os";
import path from "node:path";

/** The folder that the XDG rules give this program for what it can make again. */
export function defaultCacheDirectory(environment: NodeJS.ProcessEnv): string {
  const base = environment["XDG_CACHE_HOME"];
  // The rules say to ignore a relative path.
  const absolute = base !== undefined && path.isAbsolute(base) ? base : undefined;
  return path.join(absolute ?? path.join(homedir(), ".cache"), "tidepool");
}
