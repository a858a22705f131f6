import { accessSync, constants, existsSync, statSync } from "node:fs";
import path from "node:path";
import type { ModelHost } from "../pool/backend/python/host.ts";
import type { PythonOptions } from "../pool/backend/python/options.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** How the settings want Python models to be run. @param host what these models may ask of the server */
export function pythonOptions(settings: Settings, log: Logger, host: ModelHost): PythonOptions {
  const { python, pythonExecuteTimeout, pythonStartTimeout, pythonMemoryLimit } = settings;
  return {
    python: python ?? defaultPython(),
    executeTimeoutMilliseconds: pythonExecuteTimeout * 1000,
    startTimeoutMilliseconds: pythonStartTimeout * 1000,
    memoryLimitBytes: pythonMemoryLimit === 0 ? Infinity : pythonMemoryLimit * 2 ** 20,
    cacheDirectory: settings.localCacheDirectory,
    host,
    log,
  };
}

/**
 * Throws for an interpreter that was named and cannot be run.
 *
 * @param searchPath where one is looked for that is named without a folder
 */
export function checkPython(python: string | undefined, searchPath = ""): void {
  if (python === undefined) return;
  const folders = python.includes("/") ? [""] : searchPath.split(path.delimiter);
  if (folders.some((folder) => isProgram(path.join(folder, python)))) return;
  throw new UsageError(
    `--python: given '${python}', expected a Python interpreter that can be run`,
  );
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** The environment that the set-up makes has what models usually need; a machine's own Python seldom has numpy. */
function defaultPython(): string {
  const made = path.join(import.meta.dirname, "../.tidepool/venv/bin/python");
  return existsSync(made) ? made : "python3";
}
