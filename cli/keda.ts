import { createKedaServer } from "../autoscaler/keda.ts";
import type { Observer } from "../autoscaler/observe.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Pool } from "./pool-file/pool.ts";
import type { Settings } from "./settings.ts";
import { openKedaTls } from "./tls.ts";
import { UsageError } from "./usage-error.ts";

export interface ListeningKeda {
  /** As in `127.0.0.1:9090`. */
  readonly address: string;
  close(signal: AbortSignal): Promise<void>;
}

/** Opens the port that KEDA asks, if the settings want it. */
export async function listenKeda(
  settings: Settings,
  pools: readonly Pool[],
  observer: Observer,
  log: Logger,
): Promise<ListeningKeda | undefined> {
  if (!settings.allowKeda) return undefined;
  const { kedaAddress: host, kedaPort } = settings;
  const tls = await openKedaTls(settings, log);
  const server = createKedaServer({
    pools: new Map(pools.map((pool) => [pool.name, pool])),
    observer,
    log,
    ...(tls && { tls: tls.certificate }),
  });
  try {
    const port = await server.listen(host, kedaPort);
    return { address: `${host}:${port}`, close: (signal) => server.close(signal) };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(
      `--keda-address and --keda-port: given ${host} and ${kedaPort}, ${reason}`,
      {
        cause,
      },
    );
  }
}
