import { opendir } from "node:fs/promises";
import path from "node:path";
import { LocalStore } from "../repository/local-store.ts";
import { ModelCache, type ModelCacheCounters } from "../repository/model-cache.ts";
import type { ModelStore } from "../repository/model-store.ts";
import { S3Bucket } from "../repository/s3-bucket.ts";
import { isS3Location, type S3Location } from "../repository/s3-location.ts";
import { S3Store } from "../repository/s3-store.ts";
import { Slots } from "../repository/slots.ts";
import { readS3Location, s3BucketOptions } from "./s3-settings.ts";
import type { Settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

export interface ModelStores {
  readonly stores: readonly ModelStore[];
  /** Of the local copy of models in S3. */
  readonly cacheCounters: Readonly<ModelCacheCounters>;
}

/** Requests for content at one time, over all repositories in S3. */
const downloadsAtOnce = 16;
/** Another layout of the cache gets another folder. */
const cacheFolder = "models-1";

/** Opens the places that `--model-repository` names: folders, which must be there, and prefixes of buckets in S3. */
export async function openModelStores(
  settings: Settings,
  environment: NodeJS.ProcessEnv,
): Promise<ModelStores> {
  const cache = new ModelCache(
    path.join(settings.localCacheDirectory, cacheFolder),
    settings.modelCacheMb * 1024 * 1024,
  );
  const shared = { settings, environment, cache, slots: new Slots(downloadsAtOnce) };
  const stores: ModelStore[] = [];
  for (const place of settings.modelRepository) {
    if (isS3Location(place))
      stores.push(s3Store(readS3Location("model-repository", place), shared));
    else stores.push(await localStore(place, settings));
  }
  return { stores, cacheCounters: cache.counters };
}

interface S3Environment {
  readonly settings: Settings;
  readonly environment: NodeJS.ProcessEnv;
  readonly cache: ModelCache;
  readonly slots: Slots;
}

async function localStore(folder: string, settings: Settings): Promise<ModelStore> {
  try {
    await (await opendir(folder)).close();
  } catch (cause) {
    const text = `--model-repository: given ${folder}, which cannot be read as a folder`;
    throw new UsageError(text, { cause });
  }
  return new LocalStore(folder, settings.modelConfigName);
}

function s3Store(location: S3Location, { settings, environment, ...shared }: S3Environment) {
  const { prefix } = location;
  const options = s3BucketOptions(location, settings, environment);
  const { bucket, endpoint, patience } = options;
  return new S3Store({
    transfer: { bucket: new S3Bucket(options), slots: shared.slots, patience },
    prefix,
    place: JSON.stringify([endpoint, bucket, prefix]),
    cache: shared.cache,
    configName: settings.modelConfigName,
  });
}
