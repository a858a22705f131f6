import { status } from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "vitest";
import { busyBody, busyMessage, busyModel } from "../helpers/busy-model.ts";
import { eventually } from "../helpers/eventually.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { rawConnection } from "../helpers/raw-connection.ts";
import { type Serving, startServing, stopServing } from "../helpers/serving.ts";
import { untilUnderWay } from "../helpers/under-way.ts";

let running: Serving | undefined;

async function start(...flags: readonly string[]): Promise<Serving> {
  const models = new ModelDirectory();
  models.model("busy", { 1: busyModel() }, "instance_group [{ count: 1 }]");
  running = await startServing(models, ...flags);
  return running;
}

afterEach(async () => {
  if (running) await stopServing(running);
  running = undefined;
});

describe("tidepool serve, told to end", () => {
  it("answers what runs and what waits, takes nothing new, and ends with 0", async () => {
    const { server, http, grpc } = await start();
    // So that all that follow are under way before the first of them is answered.
    await Promise.all([http.infer("busy", busyBody(1)), grpc.infer(busyMessage("busy", 1))]);
    const bodies = Array.from({ length: 4 }, (_, i) => ({ ...busyBody(400_000), id: `${i}` }));
    const overHttp = bodies.map((body) => http.infer("busy", body));
    const overGrpc = bodies.map(() => grpc.infer(busyMessage("busy", 400_000)));
    await untilUnderWay(server.metrics, 8);
    server.process.kill("SIGTERM");
    await eventually(() =>
      expect(fetch(`${http.origin}/v2/health/live`)).rejects.toThrow("fetch failed"),
    );
    await expect(grpc.infer(busyMessage("busy", 1))).rejects.toMatchObject({
      code: status.UNAVAILABLE,
    });
    const answers = await Promise.all(overHttp);
    expect(answers.map(({ status: code }) => code)).toEqual([200, 200, 200, 200]);
    expect(answers.map(({ text }) => JSON.parse(text).id)).toEqual(["0", "1", "2", "3"]);
    expect(await Promise.all(overGrpc)).toHaveLength(4);
    expect(await server.ended).toBe(0);
  });

  it("waits no longer than --exit-timeout-secs, and ends with 1", async () => {
    const { server, http } = await start("--exit-timeout-secs=1");
    const answer = http.infer("busy", busyBody(20_000_000));
    answer.catch(() => {});
    await untilUnderWay(server.metrics, 1);
    const began = performance.now();
    server.process.kill("SIGTERM");
    expect(await server.ended).toBe(1);
    expect(performance.now() - began).toBeLessThan(4000);
    await expect(answer).rejects.toThrow("socket hang up");
  });

  it("does not wait for clients that ask nothing", async () => {
    const { server, http, grpc } = await start();
    await http.get("/v2");
    await grpc.ask("ServerLive", {});
    await Promise.all([
      rawConnection(server.http),
      rawConnection(server.http, "GET /v2 HTTP/1.1\r\nHo"),
      rawConnection(server.grpc),
      rawConnection(server.metrics),
    ]);
    const began = performance.now();
    server.process.kill("SIGTERM");
    expect(await server.ended).toBe(0);
    expect(performance.now() - began).toBeLessThan(5000);
  });
});
