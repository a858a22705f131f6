import type { Flag } from "./flag.ts";
import { accessFlags, keyFlags } from "./flags/access.ts";
import { autoscalerFlags } from "./flags/autoscaler.ts";
import { cacheFlags } from "./flags/cache.ts";
import { deviceFlags } from "./flags/devices.ts";
import { edgeKeyFlags } from "./flags/edge.ts";
import { grpcFlags } from "./flags/grpc.ts";
import { keyLimitFlags, limitFlags } from "./flags/limits.ts";
import { jobFlags } from "./flags/jobs.ts";
import { httpFlags } from "./flags/http.ts";
import { modelFlags, uploadFlags } from "./flags/models.ts";
import { defaultPoolFlags, poolFlags, poolWorkerFlags } from "./flags/pools.ts";
import { logFlags, metricsFlags } from "./flags/observing.ts";
import { pushFlags } from "./flags/push.ts";
import { pythonFlags } from "./flags/python.ts";
import { s3Flags } from "./flags/s3.ts";
import { serverFlags } from "./flags/server.ts";
import { tlsFlags } from "./flags/tls.ts";
import { traceFlags } from "./flags/tracing.ts";
import { webhookFlags } from "./flags/webhooks.ts";

/** Every flag of every command, by the name that follows `--`: Triton's own ones and ours. */
export const flagTable = {
  ...modelFlags,
  ...uploadFlags,
  ...s3Flags,
  ...pythonFlags,
  ...httpFlags,
  ...grpcFlags,
  ...tlsFlags,
  ...logFlags,
  ...metricsFlags,
  ...traceFlags,
  ...serverFlags,
  ...accessFlags,
  ...limitFlags,
  ...keyFlags,
  ...pushFlags,
  ...keyLimitFlags,
  ...edgeKeyFlags,
  ...poolFlags,
  ...defaultPoolFlags,
  ...poolWorkerFlags,
  ...cacheFlags,
  ...jobFlags,
  ...webhookFlags,
  ...autoscalerFlags,
  ...deviceFlags,
} satisfies Readonly<Record<string, Flag>>;

/** The same in the order and under the titles of the help text. */
export const flagGroups: readonly (readonly [
  title: string,
  flags: Readonly<Record<string, Flag>>,
])[] = [
  ["Models", modelFlags],
  ["Uploads of models", uploadFlags],
  ["Models in S3", s3Flags],
  ["Python models", pythonFlags],
  ["HTTP", httpFlags],
  ["gRPC", grpcFlags],
  ["TLS", tlsFlags],
  ["Metrics", metricsFlags],
  ["Logs", logFlags],
  ["Server", serverFlags],
  ["Who may call", accessFlags],
  ["How much they may ask", limitFlags],
  ["One API key", keyFlags],
  ["One push", pushFlags],
  ["Limits of an API key", keyLimitFlags],
  ["Keys at the edge", edgeKeyFlags],
  ["Queue and pools", poolFlags],
  ["The only pool, when no file names pools", defaultPoolFlags],
  ["One pool worker", poolWorkerFlags],
  ["Response cache", cacheFlags],
  ["Jobs", jobFlags],
  ["Webhooks", webhookFlags],
  ["Autoscaler", autoscalerFlags],
  ["Traces", traceFlags],
  ["Devices and clouds", deviceFlags],
];

const rows: ReadonlyMap<string, Flag> = new Map(Object.entries<Flag>(flagTable));

/** The row of a flag, or undefined for a name that nobody knows. */
export function findFlag(name: string): Flag | undefined {
  return rows.get(name);
}
