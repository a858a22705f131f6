/** Where a model repository lies in S3. */
export interface S3Location {
  /** Of a server other than Amazon's, as in `https://host:9000`. */
  readonly endpoint?: string;
  readonly bucket: string;
  /** What the keys of all models begin with: "" or a text that ends in "/". */
  readonly prefix: string;
}

const scheme = "s3://";
const form =
  /^s3:\/\/(?:(?<origin>https?:\/\/[\w.-]+(?::\d{1,5})?|[\w.-]+:\d{1,5})\/)?(?<bucket>[\w.-]{3,255})(?<path>(?:\/.*)?)$/;
// oxlint-disable-next-line no-control-regex -- control characters are what it refuses
const forbidden = /[\\\u0000-\u001f\u007f]|(?:^|\/)(?:\.{0,2})(?:\/|$)/;

/** True for what is meant as a place in S3 and not as a folder. */
export function isS3Location(text: string): boolean {
  return text.startsWith(scheme);
}

/**
 * Reads `s3://[http[s]://][host:port/]bucket[/prefix]`, Triton's spelling: a host without a scheme is asked by HTTP.
 *
 * @returns undefined for a text of another form
 */
export function parseS3Location(text: string): S3Location | undefined {
  const { origin, bucket, path = "" } = form.exec(text)?.groups ?? {};
  if (bucket === undefined) return undefined;
  const folder = path.replace(/^\/+|\/+$/g, "");
  if (folder !== "" && forbidden.test(folder)) return undefined;
  const prefix = folder === "" ? "" : `${folder}/`;
  if (origin === undefined) return { bucket, prefix };
  const endpoint = origin.includes("://") ? origin : `http://${origin}`;
  return URL.canParse(endpoint) ? { endpoint, bucket, prefix } : undefined;
}
