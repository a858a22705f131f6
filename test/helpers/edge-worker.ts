import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { unstable_getMiniflareWorkerOptions as workerOptionsOf } from "wrangler";

const root = path.resolve(import.meta.dirname, "../..");
const run = promisify(execFile);

/** Shared by the edge Worker of a test and its gateways. */
export const edgeSecret = "a secret that is long enough for a test";

/** Environment of a wrangler that asks nothing of the network unless it is told to. */
export const quietWrangler = {
  WRANGLER_SEND_METRICS: "false",
  WRANGLER_HIDE_BANNER: "true",
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
  CI: "true",
};

/** The edge Worker in workerd, with the bindings of wrangler.toml. */
export interface EdgeWorker {
  /** As in `127.0.0.1:8787`. */
  readonly address: string;
  /** Of the KV namespace. */
  readonly keys: Awaited<ReturnType<Miniflare["getKVNamespace"]>>;
  stop(): Promise<void>;
}

/** Bundles the edge Worker as `wrangler deploy` would. @returns its code, and what wrangler said */
export async function bundleEdge(): Promise<{ readonly code: string; readonly said: string }> {
  const folder = mkdtempSync(path.join(tmpdir(), "tidepool-edge-"));
  const wrangler = path.join(root, "node_modules/wrangler/bin/wrangler.js");
  const args = [wrangler, "deploy", "--dry-run", `--outdir=${folder}`];
  const env = { ...process.env, ...quietWrangler, WRANGLER_LOG_PATH: folder };
  try {
    const { stdout } = await run(process.execPath, args, { cwd: root, env });
    return { code: readFileSync(path.join(folder, "worker.js"), "utf8"), said: stdout };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The same for all edge Workers of a test file. */
let bundle: ReturnType<typeof bundleEdge> | undefined;

/**
 * @param variables in the place of those of wrangler.toml
 * @param requestLimit likewise
 */
export async function startEdge(
  variables: Readonly<Record<string, unknown>>,
  requestLimit?: number,
): Promise<EdgeWorker> {
  bundle ??= bundleEdge();
  const { code } = await bundle;
  const { workerOptions } = workerOptionsOf(path.join(root, "wrangler.toml"));
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      // Nothing is asked of the network.
      cf: false,
      telemetry: { enabled: false },
      // Failures that tests cause are no news.
      handleStructuredLogs: () => {},
      workers: [
        {
          ...workerOptions,
          bindings: { ...Object(workerOptions["bindings"]), EDGE_SECRET: edgeSecret, ...variables },
          ...(requestLimit !== undefined && limitOf(requestLimit)),
          modules: [{ type: "ESModule", path: "worker.js", contents: code }],
        },
      ],
    }),
  );
  const { host } = await miniflare.ready;
  return {
    address: host,
    keys: await miniflare.getKVNamespace("KEYS"),
    stop: () => miniflare.dispose(),
  };
}

function limitOf(limit: number): object {
  return { ratelimits: { RATE_LIMIT: { namespace_id: "1", simple: { limit, period: 60 } } } };
}
