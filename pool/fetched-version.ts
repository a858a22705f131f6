import type { LocalVersion } from "../repository/model-store.ts";
import type { VersionSource } from "../serving/running-version.ts";

/** A version whose files are on this machine's disk. */
export interface FetchedVersion
  extends Pick<VersionSource, "name" | "version" | "config">, LocalVersion {}
