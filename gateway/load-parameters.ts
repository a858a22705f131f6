import type { LoadOptions } from "../protocol/engine.ts";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { AuditDetails } from "../telemetry/audit-log.ts";

/** The value of one load parameter on its wire; each reader throws for a value of another type. */
export interface LoadParameter {
  text(): string;
  bytes(): Uint8Array;
}

const filePrefix = "file:";

/** What a client says about a model that it loads: a config, and files in place of the repository's. */
export function loadOptions(parameters: Iterable<readonly [string, LoadParameter]>): LoadOptions {
  let config: string | undefined;
  const files = new Map<string, Uint8Array>();
  for (const [key, value] of parameters) {
    if (key === "config") config = value.text();
    else if (key.startsWith(filePrefix)) files.set(key.slice(filePrefix.length), value.bytes());
    else {
      throw new InferenceError(StatusCode.InvalidArg, `unrecognized load parameter '${key}'.`);
    }
  }
  return { ...(config !== undefined && { config }), ...(files.size > 0 && { files }) };
}

/** What the audit log tells of a load: which config and files it brings along, and not what is in them. */
export function loadDetails({ config, files }: LoadOptions): AuditDetails {
  return {
    ...(config !== undefined && { config: true }),
    ...(files && { files: [...files.keys()] }),
  };
}

/** The refusal of a repository's name: the models of all repositories are one set. */
export function repositoryNamed(): InferenceError {
  return new InferenceError(
    StatusCode.Unsupported,
    "'repository_name' specification is not supported",
  );
}
