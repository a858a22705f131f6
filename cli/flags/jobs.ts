import { flag, optional } from "../flag.ts";
import { integer, text } from "../flag-type.ts";

const month = 30 * 86_400;

/** Durable requests: Prefer: respond-async, and Idempotency-Key. */
export const jobFlags = {
  "job-result-ttl-secs": flag(
    integer(1, month),
    3600,
    "Seconds that a job's result is kept after its end.",
  ),
  "job-failed-ttl-secs": flag(
    integer(1, month),
    604_800,
    "Seconds that a job that failed is kept with its request, so that it can be replayed.",
  ),
  "idempotency-ttl-secs": flag(
    integer(1, month),
    86_400,
    "Seconds that an Idempotency-Key stands for the request it first came with.",
  ),
  "job-attempts": flag(
    integer(1, 10),
    5,
    "How often a job is tried whose model cannot answer at the moment.",
  ),
  "job-max-unfinished": flag(
    integer(1),
    100_000,
    "Jobs of one pool, or of serve, that may wait or run at a time.",
  ),
  "job-max-result-bytes": flag(
    integer(1, 512 * 1024 * 1024),
    64 * 1024 * 1024,
    "Bytes that the result of one job may have.",
  ),
  "job-store": optional(
    text,
    "s3://[host:port/]bucket/prefix for requests and results over 1 MiB, the same for gateways and pool workers; default: the Redis of the queues.",
  ),
  "job-memory-mb": flag(
    integer(1),
    256,
    "Memory for the jobs of serve, in MiB; those that ended longest ago make room.",
  ),
};
