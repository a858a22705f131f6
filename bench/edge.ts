import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileKeyStore } from "../auth/file-key-store.ts";
import { createKey } from "../auth/key-changes.ts";
import { edgeKeyName } from "../protocol/edge-key.ts";
import { anyPurpose } from "../test/auth/key-store-cases.ts";
import { edgeSecret, startEdge } from "../test/helpers/edge-worker.ts";
import { type Headers, HttpClient } from "../test/helpers/http-client.ts";
import { ModelDirectory } from "../test/helpers/model-directory.ts";
import { startTidepool } from "../test/helpers/tidepool-process.ts";
import { rowOf, timesModel } from "../test/helpers/times-model.ts";

const rounds = 10;
const calls = 300;

/*
 * What the edge Worker adds to a call on loopback, one client at a time: the same calls to a gateway, and through workerd
 * in front of it, by turns. The round in which it added least is told: what others do on the machine only adds.
 * Run it with: node bench/edge.ts
 */
async function bench(): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), "tidepool-bench-edge-"));
  const [keyFile, secretFile] = [path.join(folder, "keys"), path.join(folder, "secrets")];
  writeFileSync(secretFile, edgeSecret);
  const { key, record } = await createKey(fileKeyStore(keyFile), anyPurpose, 0);
  const models = new ModelDirectory();
  models.model("plain", { 1: timesModel(2) }, "max_batch_size: 8");
  models.model("cached", { 1: timesModel(2) }, "max_batch_size: 8 response_cache { enable: true }");
  const gateway = await startTidepool([
    `--model-repository=${models.path}`,
    `--api-keys=${keyFile}`,
    `--edge-secret-file=${secretFile}`,
    "--cache-config=local,size=1048576",
  ]);
  const edge = await startEdge({ ORIGINS: `http://${gateway.http}` }, 1_000_000);
  await edge.keys.put(edgeKeyName(key.id), JSON.stringify(record));
  const headers = { "X-API-Key": key.text };
  const [direct, through] = [new HttpClient(gateway.http), new HttpClient(edge.address)];
  for (const model of ["plain", "cached"]) {
    const found: Round[] = [];
    for (let i = 0; i < rounds; i++) found.push(await round(direct, through, model, headers));
    const [best] = found.toSorted((a, b) => a.through - a.direct - (b.through - b.direct));
    if (best) print(model, best);
  }
  for (const client of [direct, through]) client.close();
  await edge.stop();
  await gateway.stop();
  models.remove();
}

/** Medians in milliseconds. */
interface Round {
  readonly direct: number;
  readonly through: number;
}

async function round(
  direct: HttpClient,
  through: HttpClient,
  model: string,
  headers: Headers,
): Promise<Round> {
  const times = { direct: [] as number[], through: [] as number[] };
  for (let i = 0; i < calls; i++) {
    times.direct.push(await timed(direct, model, headers));
    times.through.push(await timed(through, model, headers));
  }
  return { direct: median(times.direct), through: median(times.through) };
}

async function timed(http: HttpClient, model: string, headers: Headers): Promise<number> {
  const began = performance.now();
  const { status } = await http.infer(model, rowOf(1, 2), headers);
  if (status !== 200) throw new Error(`answered with ${status}`);
  return performance.now() - began;
}

function median(times: readonly number[]): number {
  return times.toSorted((one, other) => one - other)[Math.floor(times.length / 2)] ?? 0;
}

function print(model: string, { direct, through }: Round): void {
  const [one, other, added] = [direct, through, through - direct].map((ms) => ms.toFixed(2));
  process.stdout.write(`${model}: p50 ${one} ms, through the edge ${other} ms: ${added} ms more\n`);
}

await bench();
