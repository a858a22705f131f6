import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Metadata } from "@grpc/grpc-js";
import { afterAll, describe, expect, it, vi } from "vitest";
import { busyMessage, busyModel } from "../helpers/busy-model.ts";
import { deploy } from "../helpers/deployment.ts";
import { GrpcClient } from "../helpers/grpc-client.ts";
import { keysCommand } from "../helpers/keys-command.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { startTidepool } from "../helpers/tidepool-process.ts";

const model = "busy";
/** An execution takes some milliseconds. */
const message = busyMessage(model, 2000);
const flooded = 10_000;
const asked = 60;
/** More than the executions on an instance, and between two looks of a pool worker at what waits. */
const graceMilliseconds = 25;

const models = new ModelDirectory();
models.model(model, { 1: busyModel() }, "instance_group [{ count: 1 kind: KIND_CPU }]");
const folder = mkdtempSync(path.join(tmpdir(), "tidepool-fair-"));
afterAll(() => {
  models.remove();
  rmSync(folder, { recursive: true });
});

/** A server, with keys of two tenants. */
interface Stand {
  readonly grpc: string;
  readonly flood: Metadata;
  readonly calm: Metadata;
  readonly server: { stop(): Promise<unknown> };
}

async function startServe(): Promise<Stand> {
  const where = [`--api-keys=${path.join(folder, "keys.json")}`];
  const [flood, calm] = [await keyOf(where, "flood"), await keyOf(where, "calm")];
  const args = [`--model-repository=${models.path}`, ...where, "--exit-timeout-secs=1"];
  const server = await startTidepool(args);
  return { grpc: server.grpc, flood, calm, server };
}

async function startPool(): Promise<Stand> {
  const flags = ["--api-keys=redis", "--exit-timeout-secs=1"];
  const server = await deploy({ models: models.path, flags });
  const where = ["--api-keys=redis", `--redis-url=${server.redis.url}`];
  const [flood, calm] = [await keyOf(where, "flood"), await keyOf(where, "calm")];
  const target = server.gateways[0]?.grpc.getChannel().getTarget() ?? "";
  return { grpc: target.replace(/^dns:/u, ""), flood, calm, server };
}

describe.each([
  ["one server", startServe],
  ["a pool", startPool],
])("a tenant that shares %s", (_, start) => {
  it("does not wait for what another has sent before", { timeout: 120_000 }, async () => {
    const { grpc, flood, calm, server } = await start();
    const [flooding, calmly] = [new GrpcClient(grpc), new GrpcClient(grpc)];
    let answered = 0;
    try {
      await vi.waitFor(() => calmly.infer(message, calm), { timeout: 30_000, interval: 100 });
      const alone = await ask(calmly, calm, () => answered);
      for (let i = 0; i < flooded; i++) {
        // Those that are not answered are cancelled at the end.
        flooding.infer(message, flood).then(
          () => answered++,
          () => {},
        );
      }
      await vi.waitFor(() => expect(answered).toBeGreaterThan(200), { timeout: 60_000 });
      const before = answered;
      const beside = await ask(calmly, calm, () => answered);
      expect(answered).toBeLessThan(flooded / 2);
      // Its share is one execution of two; some more come back in one piece, or run while it is on its way.
      expect((answered - before) / asked).toBeLessThan(32);
      expect(median(beside.map(({ passed }) => passed))).toBeLessThan(32);
      expect(Math.max(...beside.map(({ passed }) => passed))).toBeLessThan(flooded / 20);
      const [times, timesAlone] = [beside, alone].map((seen) =>
        median(seen.map(({ milliseconds }) => milliseconds)),
      );
      expect(times).toBeLessThanOrEqual(2 * (timesAlone ?? 0) + graceMilliseconds);
    } finally {
      flooding.close();
      calmly.close();
      await server.stop();
    }
  });
});

interface Seen {
  readonly milliseconds: number;
  /** How many others were answered meanwhile. */
  readonly passed: number;
}

/** Asks one request after the other. */
async function ask(client: GrpcClient, key: Metadata, count: () => number): Promise<Seen[]> {
  const seen: Seen[] = [];
  for (let i = 0; i < asked; i++) {
    const [began, before] = [performance.now(), count()];
    await client.infer(message, key);
    seen.push({ milliseconds: performance.now() - began, passed: count() - before });
  }
  return seen;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
}

async function keyOf(where: readonly string[], tenant: string): Promise<Metadata> {
  const named = [`--key-name=${tenant}`, `--key-tenant=${tenant}`];
  const metadata = new Metadata();
  metadata.set("x-api-key", (await keysCommand("create", ...where, ...named)).out);
  return metadata;
}
