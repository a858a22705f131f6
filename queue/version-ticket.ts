import { createHash } from "node:crypto";
import type { ModelConfig } from "../protocol/model-config.ts";
import type { VersionSource } from "../serving/running-version.ts";

/** What a pool worker must know to start a version, as plain JSON. */
export interface VersionTicket {
  readonly name: string;
  readonly version: string;
  readonly config: ModelConfig;
  /** Of the files that its config was read beside. */
  readonly fingerprint: string;
  /** The files came with the load request and lie in Redis, not in the repository. */
  readonly brought: boolean;
  /** How often the model was loaded on request: each time it starts anew, from the same files or others. */
  readonly generation: number;
  /** The upload that has the files, as long as it is no part of the repository. */
  readonly staged?: string;
}

export function ticketOf(source: VersionSource, generation: number): VersionTicket {
  const { name, version, config, fingerprint, files, staged } = source;
  const brought = files !== undefined;
  return { name, version, config, fingerprint, brought, generation, ...(staged && { staged }) };
}

/** The key of a version: equal wherever the same files are served with the same config. */
export function versionKey(ticket: VersionTicket): string {
  return createHash("sha256").update(JSON.stringify(ticket)).digest("base64url").slice(0, 32);
}
