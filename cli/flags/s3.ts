import { flag, optional } from "../flag.ts";
import { boolean, integer, text } from "../flag-type.ts";

/** Model repositories in S3, and where their files are kept. */
export const s3Flags = {
  "s3-endpoint": optional(
    text,
    "S3 server for repositories that name none, as in https://host:9000; default: Amazon's.",
  ),
  "s3-path-style": optional(
    boolean,
    "Name the bucket in the path instead of the host; default: for every server but Amazon's.",
  ),
  "s3-region": optional(text, "Region of the buckets; default: what the environment says."),
  "model-cache-mb": flag(
    integer(1),
    20_480,
    "Size of the local copy of models in S3, in MiB; never more than half of the disk.",
  ),
};
