import { noEffect, repeated, replaced } from "../flag.ts";
import { integer, path, text } from "../flag-type.ts";

/** The cache of responses, for models whose config has `response_cache { enable: true }`. */
export const cacheFlags = {
  "cache-config": repeated(
    text,
    "Setting of the response cache: local,size=<bytes> keeps responses in memory, redis,url=<url> (or redis,host and redis,port) in a Redis that servers share; local,ttl and redis,ttl in seconds.",
  ),
  "response-cache-byte-size": replaced(
    integer(0),
    "cache-config",
    (bytes) => `local,size=${bytes}`,
  ),
  "cache-directory": noEffect(path, "the caches are part of this server"),
};
