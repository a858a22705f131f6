import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { coldStartPhases } from "../../protocol/cold-start.ts";
import { eventually } from "../helpers/eventually.ts";
import { freePort } from "../helpers/free-port.ts";
import { identityModel } from "../helpers/onnx-model.ts";
import { type S3Dev, startS3Dev } from "../helpers/s3-dev.ts";
import { scrape } from "../helpers/scrape.ts";

/** Spawns, connects and loads: on a busy machine that takes its time. */
const patience = { timeout: 60_000 };

describe("a cold start", patience, () => {
  const cache = mkdtempSync(path.join(tmpdir(), "tidepool-cold-"));
  let running: S3Dev;
  let autoscaler: string;

  beforeAll(async () => {
    const model = identityModel([{ name: "x", datatype: "FP32", shape: [2] }, "y"]);
    const port = await freePort();
    autoscaler = `127.0.0.1:${port}`;
    running = await startS3Dev(
      (s3) => s3.putModel("list", { 1: model }),
      `--local-cache-directory=${cache}`,
      `--autoscaler-metrics-port=${port}`,
      "--pool-idle-seconds=0",
      "--autoscaler-interval-ms=50",
    );
  }, 60_000);
  afterAll(async () => {
    await running.stop();
    rmSync(cache, { recursive: true, force: true });
  });

  const body = { inputs: [{ name: "x", datatype: "FP32", shape: [2], data: [1, 2] }] };

  const ebb = (): Promise<void> =>
    eventually(async () => {
      const series = await scrape(autoscaler);
      expect(series.get('tidepool_autoscaler_workers{kind="existing",pool="default"}')).toBe(0);
      const gateway = await scrape(running.server.metrics);
      for (const state of ["starting", "ready", "draining"])
        expect(gateway.get(`tidepool_pool_workers{pool="default",state="${state}"}`)).toBe(0);
    });

  it("tells the client in which phases its time was spent", async () => {
    await ebb();
    const began = performance.now();
    const answer = await running.http.infer("list", body);
    const wall = performance.now() - began;
    expect(answer.status).toBe(200);
    const timing = String(answer.headers["server-timing"]);
    const phases = [...timing.matchAll(/(?<phase>\w+);dur=(?<dur>[\d.]+)/gu)];
    expect(phases.map(([, phase]) => phase)).toEqual(coldStartPhases);
    const [, spawn = 0, fetched = 0, load = 0] = phases.map(([, , dur]) => Number(dur));
    for (const phase of [spawn, fetched, load]) expect(phase).toBeGreaterThan(1);
    const sum = phases.reduce((total, [, , dur]) => total + Number(dur), 0);
    // Whole milliseconds of clocks, and an answer that has to be read on a busy machine.
    expect(sum).toBeLessThan(wall + 2);
    expect(sum).toBeGreaterThan(0.8 * wall);
  });

  it("is told as it goes on to a client that asks for events", async () => {
    await ebb();
    rmSync(path.join(cache, "models-1"), { recursive: true, force: true });
    const { text } = await running.http.infer("list", body, { accept: "text/event-stream" });
    const events = text.trimEnd().split("\n\n");
    const names = events.map((event) => /^event: (?<name>\w+)/u.exec(event)?.[1]);
    expect([...new Set(names)]).toEqual([
      "queued",
      "starting",
      "fetching",
      "loading",
      "running",
      "result",
    ]);
    const fetched = events.findLast((event) => event.includes("fetching")) ?? "";
    const told = JSON.parse(/data: (?<json>.*)/u.exec(fetched)?.[1] ?? "");
    expect(told).toMatchObject({ percent: 100, fetched_bytes: told.total_bytes });
    expect(told.total_bytes).toBeGreaterThan(50);
    expect(events.at(-1)).toContain('"data":[1.0,2.0]');
  });

  it("is counted by phase and told in the log", async () => {
    await ebb();
    await running.http.infer("list", body);
    const starts = 'tidepool_cold_starts_total{model="list",pool="default"}';
    const lines = running.server.lines.filter(({ msg }) => msg === "cold start");
    expect(lines.length).toBeGreaterThanOrEqual(1);
    expect(lines[0]).toMatchObject({ pool: "default", model: "list" });
    for (const phase of [...coldStartPhases, "total"])
      expect(lines[0]?.[phase]).toBeTypeOf("number");
    await eventually(async () => {
      const series = await scrape(running.server.metrics);
      expect(series.get(starts)).toBe(lines.length);
      for (const phase of coldStartPhases) {
        const labels = `{phase="${phase}",model="list",pool="default"}`;
        const name = "tidepool_cold_start_duration_seconds";
        expect(series.get(`${name}_count${labels}`)).toBe(lines.length);
        expect(series.get(`${name}_sum${labels}`)).toBeLessThan(60);
      }
    });
  });

  it("is a decision of the autoscaler, with its reason", async () => {
    const series = await scrape(autoscaler);
    const decisions = 'tidepool_autoscaler_decisions_total{pool="default",reason="from_zero"}';
    expect(series.get(decisions)).toBeGreaterThanOrEqual(1);
  });
});
