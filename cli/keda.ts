import { createKedaServer, type KedaTls } from "../autoscaler/keda.ts";
import type { Observer } from "../autoscaler/observe.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Pool } from "./pool-file/pool.ts";
import { readPem } from "./read-pem.ts";
import type { Settings } from "./settings.ts";
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
  const tls = await readTls(settings);
  const server = createKedaServer({
    pools: new Map(pools.map((pool) => [pool.name, pool])),
    observer,
    log,
    ...(tls && { tls }),
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

async function readTls(settings: Settings): Promise<KedaTls | undefined> {
  const { kedaServerCert, kedaServerKey, kedaRootCert } = settings;
  if (kedaServerCert === undefined || kedaServerKey === undefined) return undefined;
  return {
    certificate: await readPem("keda-server-cert", kedaServerCert),
    key: await readPem("keda-server-key", kedaServerKey),
    ...(kedaRootCert !== undefined && {
      clientAuthority: await readPem("keda-root-cert", kedaRootCert),
    }),
  };
}
