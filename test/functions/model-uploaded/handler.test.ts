import { createServer, type Server } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { handler } from "../../../functions/model-uploaded/handler.ts";
import { s3Event } from "./s3-event.ts";

/** A gateway that answers as a test wants. */
interface Gateway {
  readonly server: Server;
  readonly asked: string[];
  readonly secrets: unknown[];
  /** Of each answer; 200 when there is none left. */
  readonly statuses: number[];
}

let gateway: Gateway;
beforeEach(async () => {
  const asked: string[] = [];
  const secrets: unknown[] = [];
  const statuses: number[] = [];
  const server = createServer(({ method, url = "", headers }, outgoing) => {
    asked.push(`${method} ${url} ${headers.authorization}`);
    secrets.push(headers["x-secret"]);
    const status = statuses.shift() ?? 200;
    const json = status === 200 ? { serving_versions: ["1", "2"] } : { error: "not yet" };
    outgoing.writeHead(status).end(JSON.stringify(json));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("no port");
  gateway = { server, asked, secrets, statuses };
  process.env["TIDEPOOL_URL"] = `http://127.0.0.1:${address.port}/`;
  process.env["TIDEPOOL_KEY"] = "key";
  process.env["MODELS"] = "s3://models/prod";
});
afterEach(async () => {
  for (const name of ["TIDEPOOL_URL", "TIDEPOOL_KEY", "TIDEPOOL_HEADERS", "MODELS"])
    Reflect.deleteProperty(process.env, name);
  gateway.server.closeAllConnections();
  await new Promise((resolve) => gateway.server.close(resolve));
});

describe("handler", () => {
  it("has the gateway serve each model that something arrived of, once", async () => {
    const events = ["prod/a/1/x", "prod/a/1/y", "prod/b%20c/1/x", "other/d/1/x"];
    const Records = events.flatMap((key) => s3Event(key).Records);
    expect(await handler({ Records })).toEqual({ a: ["1", "2"], "b c": ["1", "2"] });
    const place = "POST /v2/repository/models";
    const all = [`${place}/a/activate Bearer key`, `${place}/b%20c/activate Bearer key`];
    expect(gateway.asked).toEqual(all);
    expect(await handler({ Records })).toEqual({});
    expect(gateway.asked).toEqual(all);
  });

  it("tries again while the gateway is busy, and fails for good when the model does", async () => {
    gateway.statuses.push(503, 429);
    expect(await handler(s3Event("prod/busy/1/x"))).toEqual({ busy: ["1", "2"] });
    gateway.statuses.push(400);
    const event = s3Event("prod/half/1/x");
    await expect(handler(event)).rejects.toThrow("model 'half': HTTP 400: not yet");
    expect(await handler(event)).toEqual({ half: ["1", "2"] });
  });

  it("shows the headers that the gateway wants besides, and tells nobody of wrong ones", async () => {
    process.env["TIDEPOOL_HEADERS"] = "X-Secret: open";
    expect(await handler(s3Event("prod/restricted/1/x"))).toEqual({ restricted: ["1", "2"] });
    expect(gateway.secrets).toEqual(["open"]);
    process.env["TIDEPOOL_HEADERS"] = "X-Secret=open";
    await expect(handler({})).rejects.toThrow(/^TIDEPOOL_HEADERS: (?!.*open)/u);
  });

  it("says which setting is missing", async () => {
    Reflect.deleteProperty(process.env, "MODELS");
    await expect(handler({})).rejects.toThrow("MODELS: given '', expected s3://bucket/prefix");
    process.env["TIDEPOOL_URL"] = "gateway:8000";
    await expect(handler({})).rejects.toThrow("TIDEPOOL_URL: given 'gateway:8000'");
  });
});
