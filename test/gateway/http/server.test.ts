import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { createHttpApp } from "../../../gateway/http/app.ts";
import { listenHttp } from "../../../gateway/http/server.ts";
import { echo } from "../../helpers/memory-engine.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { HttpStand } from "./http-stand.ts";

const body = { inputs: [{ name: "IN0", shape: [1], datatype: "FP32", data: [1] }] };

/** A server with a model that answers when it is told to. */
async function standWithHeldModel(): Promise<{
  stand: HttpStand;
  running: Promise<void>;
  letGo: () => void;
}> {
  const stand = await HttpStand.start();
  const running = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const config = {
    input: [modelInput("IN0", "TYPE_FP32", [1])],
    output: [modelOutput("OUT0", "TYPE_FP32", [1])],
  };
  stand.engine.add(servedModel("held", config), async function* (request) {
    running.resolve();
    await gate.promise;
    yield echo(request);
  });
  return { stand, running: running.promise, letGo: gate.resolve };
}

describe("listenHttp", () => {
  it("answers what it has taken before it closes, and takes nothing new", async () => {
    const { stand, running, letGo } = await standWithHeldModel();
    const answer = stand.infer("held", body);
    await running;
    const closed = stand.server.close(new AbortController().signal);
    await expect(fetch(`${stand.origin}/v2`)).rejects.toThrow("fetch failed");
    letGo();
    expect((await answer).status).toBe(200);
    await closed;
  });

  it("cuts off what is left when the signal comes", async () => {
    const { stand, running } = await standWithHeldModel();
    const answer = stand.infer("held", body).catch((error: unknown) => error);
    await running;
    await stand.server.close(AbortSignal.timeout(50));
    expect(await answer).toBeInstanceOf(Error);
  });

  it("does not wait for clients that keep an idle connection", async () => {
    const stand = await HttpStand.start();
    const socket = connect(stand.server.port, "127.0.0.1");
    await once(socket, "connect");
    socket.write("GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n");
    await once(socket, "data");
    await expect(stand.server.close(new AbortController().signal)).resolves.toBeUndefined();
    socket.destroy();
  });

  it("rejects when the port is taken", async () => {
    const stand = await HttpStand.start();
    const app = createHttpApp(stand.plane, {
      maxInputBytes: 1,
      log: stand.log,
      logSettings: stand.log,
    });
    const address = { host: "127.0.0.1", port: stand.server.port };
    await expect(listenHttp(app, address)).rejects.toThrow("EADDRINUSE");
    await stand.stop();
  });
});
