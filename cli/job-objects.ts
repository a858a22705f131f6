import type { ObjectStore } from "../queue/job-objects.ts";
import { PayloadStore } from "../queue/payload-store.ts";
import type { Redis } from "../redis/connection.ts";
import { S3Objects } from "../repository/s3-objects.ts";
import { readS3Location, s3BucketOptions } from "./s3-settings.ts";
import type { Settings } from "./settings.ts";

/** Where the large requests and results of jobs lie: in the bucket that `--job-store` names, or in Redis. */
export function jobObjects(settings: Settings, commands: Redis): ObjectStore {
  if (settings.jobStore === undefined) return new PayloadStore(commands);
  const location = readS3Location("job-store", settings.jobStore);
  const { prefix } = location;
  return new S3Objects({ ...s3BucketOptions(location, settings, process.env), prefix });
}
