import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./free-port.ts";

const brought = path.resolve(
  import.meta.dirname,
  "../../.tidepool/debian/prometheus/usr/bin/prometheus",
);

/** What one PromQL expression gives now. */
export interface PromqlResult {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [time: number, value: string];
}

/** A real Prometheus that scrapes one target every second. */
export interface Prometheus {
  /** Waits until the expression gives something; fails when it does not within ten seconds. */
  query(promql: string): Promise<readonly PromqlResult[]>;
  close(): Promise<void>;
}

/** @param target host and port that serve `/metrics` */
export async function startPrometheus(target: string): Promise<Prometheus> {
  const folder = mkdtempSync(path.join(tmpdir(), "tidepool-prometheus-"));
  const config = path.join(folder, "prometheus.yml");
  const scrape = { job_name: "tidepool", static_configs: [{ targets: [target] }] };
  // JSON is YAML.
  writeFileSync(
    config,
    JSON.stringify({
      global: { scrape_interval: "1s", scrape_timeout: "1s" },
      scrape_configs: [scrape],
    }),
  );
  const address = `127.0.0.1:${await freePort()}`;
  const program = existsSync(brought) ? brought : "prometheus";
  const args = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${path.join(folder, "data")}`,
    `--web.listen-address=${address}`,
  ];
  const child = spawn(program, args, { stdio: "ignore" });
  await once(child, "spawn");
  return {
    query: (promql) => pollQuery(`http://${address}/api/v1/query`, promql),
    async close() {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function pollQuery(url: string, promql: string): Promise<readonly PromqlResult[]> {
  const until = Date.now() + 10_000;
  while (Date.now() < until) {
    // oxlint-disable-next-line no-await-in-loop -- one try after the other
    const result = await tryQuery(url, promql);
    if (result.length > 0) return result;
    // oxlint-disable-next-line no-await-in-loop -- one try after the other
    await sleep(100);
  }
  throw new Error(`Prometheus has nothing for ${promql}`);
}

async function tryQuery(url: string, promql: string): Promise<readonly PromqlResult[]> {
  try {
    const response = await fetch(`${url}?query=${encodeURIComponent(promql)}`);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the shape that Prometheus documents
    const body = (await response.json()) as { data?: { result?: PromqlResult[] } };
    return body.data?.result ?? [];
  } catch {
    // Not listening yet.
    return [];
  }
}
