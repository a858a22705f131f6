import { Server, type ServerCredentials } from "@grpc/grpc-js";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { Logger } from "../telemetry/logger.ts";
import { watchActivity } from "./keda-activity.ts";
import { type OpenStream, stream, unary } from "./keda-calls.ts";
import { kedaCredentials, type KedaTls } from "./keda-credentials.ts";
import { type Fields, kedaMethods } from "./keda-methods.ts";
import { kedaTrigger, metricSpecs, metricValues, type KedaPool } from "./keda-metrics.ts";
import { isBusy, type Observer, type PoolObservation } from "./observe.ts";
import { TroubleLog } from "./trouble-log.ts";

export interface KedaServerOptions {
  /** By name. */
  readonly pools: ReadonlyMap<string, KedaPool>;
  readonly observer: Observer;
  readonly log: Logger;
  /** Without it connections are not encrypted. */
  readonly tls?: KedaTls;
  /** How often the demand of a watched pool is looked at beside the pushes; every second by default. */
  readonly pollMilliseconds?: number;
}

/** An external scaler: KEDA asks it how much there is to do, and is told at once when a pool is needed. */
export interface KedaServer {
  /** Resolves with the port; 0 lets the system choose. */
  listen(host: string, port: number): Promise<number>;
  /** Ends the streams and resolves when all calls have ended; those left when the signal comes are cut off. */
  close(signal: AbortSignal): Promise<void>;
}

const serverOptions = {
  "grpc.max_receive_message_length": 64 * 1024,
  // KEDA's operator has one stream for each scaled object, all on one connection.
  "grpc.max_concurrent_streams": 1000,
  // An operator that is gone without a word must not be pushed to for ever.
  "grpc.keepalive_time_ms": 30_000,
  "grpc.keepalive_timeout_ms": 10_000,
};

/** Serves KEDA's contract; any number of replicas may do so at once, because nothing is written. */
export function createKedaServer(options: KedaServerOptions): KedaServer {
  const server = new Server(serverOptions);
  const streams = new Set<OpenStream>();
  const observe = observing(options);
  const triggerOf = (ref: Fields | undefined) =>
    kedaTrigger(options.pools, ref?.["scalerMetadata"] ?? {});
  server.addService(kedaMethods(), {
    IsActive: unary(async (ref) => ({ result: isBusy(await observe(triggerOf(ref).pool)) })),
    GetMetricSpec: unary((ref) => metricSpecs(triggerOf(ref))),
    GetMetrics: unary(({ scaledObjectRef, metricName }) =>
      metricValues(triggerOf(scaledObjectRef), metricName, observe),
    ),
    StreamIsActive: stream(streams, (ref, write) => {
      const { pool } = triggerOf(ref);
      const active = async (): Promise<boolean> => isBusy(await observe(pool));
      return watchActivity({ ...options, pool, active }, (result) => write({ result }));
    }),
    // The targets stay as they are while we run: nothing follows the first message.
    StreamMetricSpec: stream(streams, (ref, write) => {
      write(metricSpecs(triggerOf(ref)));
      return () => {};
    }),
  });
  return {
    listen: (host, port) => listen(server, addressOf(host, port), kedaCredentials(options.tls)),
    close: (signal) => close(server, streams, signal),
  };
}

/** Observes for callers outside, who get no cause; the log gets it once. */
function observing({
  observer,
  log,
}: KedaServerOptions): (pool: string) => Promise<PoolObservation> {
  const trouble = new TroubleLog(log, "KEDA scaler: observing the demand");
  return async (pool) => {
    try {
      const observation = await observer.observe(pool);
      trouble.succeeded();
      return observation;
    } catch (cause) {
      trouble.failed(cause);
      const text = `pool '${pool}': its demand cannot be told now; the autoscaler's log has the cause`;
      throw new InferenceError(StatusCode.Unavailable, text, { cause });
    }
  };
}

function addressOf(host: string, port: number): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function listen(server: Server, address: string, credentials: ServerCredentials): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.bindAsync(address, credentials, (error, port) => {
    if (error) reject(error);
    else resolve(port);
  });
  return promise;
}

async function close(
  server: Server,
  streams: ReadonlySet<OpenStream>,
  signal: AbortSignal,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.tryShutdown(() => resolve());
  for (const call of streams) call.end();
  const cutOff = (): void => server.forceShutdown();
  signal.addEventListener("abort", cutOff, { once: true });
  if (signal.aborted) cutOff();
  await promise;
  signal.removeEventListener("abort", cutOff);
}
