import { extraHeaders } from "../../protocol/extra-headers.ts";
import type { ModelPlace } from "./arrivals.ts";

/** What the environment says. */
export interface ModelUploadedSettings extends ModelPlace {
  readonly gatewayUrl: string;
  readonly gatewayKey: string | undefined;
  readonly gatewayHeaders: Readonly<Record<string, string>>;
}

/** The server of a place in S3 may be named, as where models are served from; events have the bucket alone. */
const placeForm =
  /^s3:\/\/(?:(?:https?:\/\/[\w.-]+(?::\d{1,5})?|[\w.-]+:\d{1,5})\/)?(?<bucket>[\w.-]{3,255})(?:\/(?<prefix>.*))?$/u;

/** Reads the environment; throws for what is missing, by its name. */
export function readSettings(
  environment: Readonly<Record<string, string | undefined>>,
): ModelUploadedSettings {
  const { TIDEPOOL_URL: gatewayUrl = "", TIDEPOOL_KEY: gatewayKey } = environment;
  const [, bucket = "", prefix = ""] = placeForm.exec(environment["MODELS"] ?? "") ?? [];
  if (!/^https?:\/\//u.test(gatewayUrl))
    throw new Error(`TIDEPOOL_URL: given '${gatewayUrl}', expected http://host:port or https://`);
  if (bucket === "")
    throw new Error(`MODELS: given '${environment["MODELS"] ?? ""}', expected s3://bucket/prefix`);
  const folder = prefix.replace(/\/+$/u, "");
  return {
    gatewayUrl,
    gatewayKey,
    gatewayHeaders: extraHeaders("TIDEPOOL_HEADERS", environment["TIDEPOOL_HEADERS"] ?? ""),
    bucket,
    prefix: folder === "" ? "" : `${folder}/`,
  };
}
