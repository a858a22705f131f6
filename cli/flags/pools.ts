import { flag, optional } from "../flag.ts";
import { integer, path, positiveNumber, text } from "../flag-type.ts";

/** The commands that share a Redis: gateway, pool, autoscaler and dev. */
export const poolFlags = {
  "redis-url": optional(
    text,
    "Redis that holds the queues: redis://, rediss:// with TLS, or redis-cluster://host:port,host:port; default: redis://127.0.0.1:6379, and for dev one that it starts.",
  ),
  "pool-config": optional(
    path,
    "File that names the pools, tidepool.yaml; without it one pool, 'default', serves every model.",
  ),
};

/** The only pool of a deployment without a file of pools. */
export const defaultPoolFlags = {
  "pool-min-workers": flag(
    integer(0, 1000),
    0,
    "Pool workers of the default pool that stay when nothing is to do.",
  ),
  "pool-max-workers": flag(integer(1, 1000), 1, "Most pool workers of the default pool."),
  "pool-idle-seconds": flag(
    integer(0, 86_400),
    60,
    "Seconds from the last request to the end of the default pool's last worker.",
  ),
};

/** One pool worker: set by whoever starts it. */
export const poolWorkerFlags = {
  pool: flag(text, "default", "Pool that this pool worker works for."),
  "pool-worker-id": flag(text, "", "Name of this pool worker; default: a random one."),
  "demand-seen-at": optional(
    positiveNumber,
    "When the demand was seen that this pool worker was started for, in milliseconds since 1970: set by the autoscaler, for the phases of a cold start.",
  ),
  "decided-at": optional(
    positiveNumber,
    "When it was decided to start this pool worker, likewise.",
  ),
};
