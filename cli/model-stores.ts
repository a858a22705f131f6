import { opendir } from "node:fs/promises";
import path from "node:path";
import { ModelCache, type ModelCacheCounters } from "../repository/model-cache.ts";
import { S3Bucket } from "../repository/s3-bucket.ts";
import { isS3Location, type S3Location } from "../repository/s3-location.ts";
import { S3Store } from "../repository/s3-store.ts";
import { S3Writer } from "../repository/s3-writer.ts";
import { Slots } from "../repository/slots.ts";
import { LocalUploads } from "../repository/uploads/local-uploads.ts";
import { S3Uploads } from "../repository/uploads/s3-uploads.ts";
import type { UploadStore } from "../repository/uploads/upload-store.ts";
import { readS3Location, s3BucketOptions } from "./s3-settings.ts";
import type { Settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

export interface ModelStores {
  /** Each with the store that it uploads to. */
  readonly uploads: readonly UploadStore[];
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
  const uploads: UploadStore[] = [];
  for (const place of settings.modelRepository) {
    if (isS3Location(place))
      uploads.push(s3Uploads(readS3Location("model-repository", place), shared));
    else uploads.push(await localUploads(place, settings));
  }
  return { uploads, cacheCounters: cache.counters };
}

interface S3Environment {
  readonly settings: Settings;
  readonly environment: NodeJS.ProcessEnv;
  readonly cache: ModelCache;
  readonly slots: Slots;
}

async function localUploads(folder: string, settings: Settings): Promise<UploadStore> {
  try {
    await (await opendir(folder)).close();
  } catch (cause) {
    const text = `--model-repository: given ${folder}, which cannot be read as a folder`;
    throw new UsageError(text, { cause });
  }
  return new LocalUploads(folder, settings.modelConfigName);
}

function s3Uploads(
  location: S3Location,
  { settings, environment, ...shared }: S3Environment,
): UploadStore {
  const { prefix } = location;
  const options = s3BucketOptions(location, settings, environment);
  const { bucket, endpoint, patience } = options;
  const transfer = { bucket: new S3Bucket(options), slots: shared.slots, patience };
  const store = new S3Store({
    transfer,
    prefix,
    place: JSON.stringify([endpoint, bucket, prefix]),
    cache: shared.cache,
    configName: settings.modelConfigName,
  });
  return new S3Uploads({ store, transfer, prefix, writer: new S3Writer(options) });
}
