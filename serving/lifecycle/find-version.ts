import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { ModelRecord } from "./model-record.ts";
import type { RunningVersion } from "../running-version.ts";

const maxVersion = 2n ** 63n - 1n;

/**
 * The version a request means, when it is not simply one that answers: another spelling of its number ("01"),
 * or the reason why there is none, in the reference's words.
 */
export function findVersion(
  record: ModelRecord | undefined,
  name: string,
  text: string,
): RunningVersion {
  const version = text === "" ? "" : versionNumber(text);
  const running = record?.ready(version);
  if (running) return running;
  if (!record) throw unknown(StatusCode.NotFound, `'${name}' is not found`);
  if (version === "") throw unknown(StatusCode.NotFound, `'${name}' has no available versions`);
  if (!record.knows(version))
    throw unknown(StatusCode.NotFound, `'${name}' version ${version} is not found`);
  throw unknown(StatusCode.Unavailable, `'${name}' version ${version} is not at ready state`);
}

function versionNumber(text: string): string {
  if (/^-\d{1,18}$/.test(text))
    throw invalid(`invalid model version specified '${text}' , version should be`);
  const number = /^\d{1,20}$/.test(text) ? BigInt(text) : maxVersion + 1n;
  if (number > maxVersion) {
    const shown = text.length > 64 ? `${text.slice(0, 64)}…` : text;
    throw invalid(
      `failed to get model version from specified version string '${shown}' (details: stol), version should be`,
    );
  }
  return String(number);
}

function unknown(code: StatusCode, what: string): InferenceError {
  return new InferenceError(code, `Request for unknown model: ${what}`);
}

function invalid(text: string): InferenceError {
  return new InferenceError(StatusCode.InvalidArg, `${text} an integral value > 0`);
}
