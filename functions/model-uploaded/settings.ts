import type { ModelPlace } from "./arrivals.ts";

/** What the environment says. */
export interface ModelUploadedSettings extends ModelPlace {
  readonly gatewayUrl: string;
  readonly gatewayKey: string | undefined;
}

/** Reads the environment; throws for what is missing, by its name. */
export function readSettings(
  environment: Readonly<Record<string, string | undefined>>,
): ModelUploadedSettings {
  const { TIDEPOOL_URL: gatewayUrl = "", TIDEPOOL_KEY: gatewayKey } = environment;
  const [, bucket = "", prefix = ""] =
    /^s3:\/\/(?<bucket>[\w.-]{3,255})\/?(?<prefix>.*)$/u.exec(environment["MODELS"] ?? "") ?? [];
  if (!/^https?:\/\//u.test(gatewayUrl))
    throw new Error(`TIDEPOOL_URL: given '${gatewayUrl}', expected http://host:port or https://`);
  if (bucket === "")
    throw new Error(`MODELS: given '${environment["MODELS"] ?? ""}', expected s3://bucket/prefix`);
  const folder = prefix.replace(/\/+$/u, "");
  return { gatewayUrl, gatewayKey, bucket, prefix: folder === "" ? "" : `${folder}/` };
}
