import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { publishedKeys } from "../../../auth/edge-keys.ts";
import { fileKeyStore } from "../../../auth/file-key-store.ts";
import { createKey, type KeyPurpose } from "../../../auth/key-changes.ts";
import type { KeyStore } from "../../../auth/key-store.ts";
import { kvNamespace } from "../../../auth/kv-namespace.ts";
import { anyPurpose } from "../../auth/key-store-cases.ts";
import { type CountingOrigin, startCountingOrigin } from "../../helpers/counting-origin.ts";
import { edgeSecret, type EdgeWorker, startEdge } from "../../helpers/edge-worker.ts";
import { eventually } from "../../helpers/eventually.ts";
import { HttpClient } from "../../helpers/http-client.ts";
import { type KvApi, kvToken, startKvApi } from "../../helpers/kv-api.ts";
import { ModelDirectory } from "../../helpers/model-directory.ts";
import { startTidepool, type TidepoolProcess } from "../../helpers/tidepool-process.ts";
import { timesModel } from "../../helpers/times-model.ts";

/** The edge Worker in workerd, in front of a real gateway whose calls are counted, with keys that both know. */
export interface EdgeStand {
  readonly edge: EdgeWorker;
  /** Asks the edge. */
  readonly http: HttpClient;
  /** Asks the gateway, past the edge. */
  readonly gateway: HttpClient;
  readonly origin: CountingOrigin;
  readonly models: ModelDirectory;
  readonly kv: KvApi;
  readonly keyFile: string;
  /** Whose changes the edge is told of. */
  readonly store: KeyStore;
  /** A key that the gateway takes already, and the edge does. */
  key(purpose?: Partial<KeyPurpose>): Promise<string>;
  stop(): Promise<void>;
}

const batches = "max_batch_size: 8";

/** @param variables in the place of those of wrangler.toml, besides the origin */
export async function startEdgeStand(
  variables: Readonly<Record<string, unknown>> = {},
  flags: readonly string[] = [],
): Promise<EdgeStand> {
  const folder = mkdtempSync(path.join(tmpdir(), "tidepool-edge-"));
  const keyFile = path.join(folder, "keys.json");
  writeFileSync(path.join(folder, "secrets"), `${"another secret ".repeat(3)}\n${edgeSecret}\n`);
  const files = fileKeyStore(keyFile);
  await createKey(files, anyPurpose, Date.now());
  const models = new ModelDirectory();
  models.model("plain", { 1: timesModel(2) }, batches);
  models.model("cached", { 1: timesModel(3) }, `${batches} response_cache { enable: true }`);
  const gateway = await startTidepool([
    `--model-repository=${models.path}`,
    `--api-keys=${keyFile}`,
    `--edge-secret-file=${path.join(folder, "secrets")}`,
    "--cache-config=local,size=1048576",
    "--model-control-mode=explicit",
    "--load-model=*",
    ...flags,
  ]);
  const origin = await startCountingOrigin(gateway.http);
  const edge = await startEdge({ ORIGINS: origin.url, ...variables });
  const kv = await startKvApi(edge.keys);
  const edgeKeys = kvNamespace({
    endpoint: kv.flags[2]?.split("=")[1] ?? "",
    accountId: "acc0",
    namespaceId: "ns0",
    token: kvToken,
  });
  const { store } = publishedKeys(files, edgeKeys);
  const direct = new HttpClient(gateway.http);
  const http = new HttpClient(edge.address);
  return {
    edge,
    http,
    gateway: direct,
    origin,
    models,
    kv,
    keyFile,
    store,
    async key(purpose = {}) {
      const { key } = await createKey(store, { ...anyPurpose, ...purpose }, Date.now());
      await eventually(() => isTaken(direct, key.text));
      return key.text;
    },
    async stop() {
      http.close();
      direct.close();
      kv.close();
      await edge.stop();
      origin.close();
      await stopped(gateway);
      models.remove();
      rmSync(folder, { recursive: true });
    },
  };
}

async function isTaken(http: HttpClient, key: string): Promise<void> {
  const { status } = await http.ask("GET", "/v2", undefined, { "X-API-Key": key });
  if (status === 401) throw new Error("not yet");
}

async function stopped(gateway: TidepoolProcess): Promise<void> {
  await gateway.stop();
}
