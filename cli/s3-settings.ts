import type { S3BucketOptions } from "../repository/s3-bucket.ts";
import { parseS3Location, type S3Location } from "../repository/s3-location.ts";
import { defaultPatience } from "../repository/s3-retry.ts";
import type { Settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** How the bucket of a place in S3 is reached, by flags and environment. */
export function s3BucketOptions(
  { bucket, endpoint: own }: S3Location,
  settings: Settings,
  environment: NodeJS.ProcessEnv,
): S3BucketOptions {
  const endpoint =
    own ??
    settings.s3Endpoint ??
    environment["AWS_ENDPOINT_URL_S3"] ??
    environment["AWS_ENDPOINT_URL"];
  if (endpoint !== undefined && !/^https?:\/\//.test(endpoint))
    throw new UsageError(`--s3-endpoint: given ${endpoint}, expected http:// or https://`);
  return {
    bucket,
    endpoint,
    region: regionOf(settings, environment, endpoint),
    pathStyle: settings.s3PathStyle ?? endpoint !== undefined,
    patience: defaultPatience,
  };
}

/** The place that a flag names; throws a UsageError for a text of another form. */
export function readS3Location(flag: string, text: string): S3Location {
  const location = parseS3Location(text);
  if (location) return location;
  throw new UsageError(
    `--${flag}: given ${text}, expected s3://[http[s]://][host:port/]bucket[/prefix]`,
  );
}

/** The SDK itself reads AWS_REGION and profiles, and not the variable that Triton and Amazon's other tools read. */
function regionOf(
  settings: Settings,
  environment: NodeJS.ProcessEnv,
  endpoint: string | undefined,
): string | undefined {
  const given = settings.s3Region ?? environment["AWS_REGION"] ?? environment["AWS_DEFAULT_REGION"];
  // Servers other than Amazon's have no regions, and signatures need some name.
  return given ?? (endpoint === undefined ? undefined : "us-east-1");
}
