import { createServer } from "node:http";
import type { Server } from "node:http";
import { connect } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { DataPlane } from "../gateway/data-plane.ts";
import { createHttpApp } from "../gateway/http/app.ts";
import { listenHttp } from "../gateway/http/server.ts";
import { splitBody } from "../protocol/binary-data.ts";
import { parseInfer } from "../protocol/infer-json.ts";
import { inferReply } from "../protocol/infer-reply.ts";
import { noParameters } from "../protocol/parameters.ts";
import { validRequest } from "../protocol/valid-request.ts";
import { echo, MemoryEngine } from "../test/helpers/memory-engine.ts";
import { modelInput, modelOutput, servedModel } from "../test/helpers/served-model.ts";
import { SilentLog } from "../test/helpers/silent-log.ts";

/*
 * What one FP32 [1,16] inference with binary data costs over HTTP, without an engine: the codec alone, and the whole
 * path beside a bare node:http server that reads the body and answers. Client and server share this process and its
 * thread, so that only the difference of two rows means something. Run it with: node bench/http-codec.ts
 */
const model = servedModel("identity", {
  maxBatchSize: 8,
  input: [modelInput("INPUT0", "TYPE_FP32", [16])],
  output: [modelOutput("OUTPUT0", "TYPE_FP32", [16])],
});
const head = Buffer.from(
  JSON.stringify({
    inputs: [
      {
        name: "INPUT0",
        shape: [1, 16],
        datatype: "FP32",
        parameters: { binary_data_size: 64 },
      },
    ],
    outputs: [{ name: "OUTPUT0", parameters: { binary_data: true } }],
  }),
);
const body = Buffer.concat([head, Buffer.alloc(64)]);

function print(name: string, microseconds: number): void {
  process.stdout.write(`${name.padEnd(44)} ${microseconds.toFixed(2).padStart(8)} µs\n`);
}

/** Microseconds of CPU that this process has used: unlike the clock, it does not count what others do meanwhile. */
function cpuMicroseconds(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

function best(rounds: number, measure: () => number): number {
  return Math.min(...Array.from({ length: rounds }, measure));
}

function codec(): void {
  const target = { modelName: "identity", modelVersion: "", forwarded: noParameters };
  const times = 50_000;
  const microseconds = best(5, () => {
    const start = cpuMicroseconds();
    for (let i = 0; i < times; i += 1) {
      const parts = splitBody(body, String(head.length));
      const { request, binaryOutputs } = parseInfer(parts.head, parts.tail, target);
      inferReply(echo(validRequest(model, request)), binaryOutputs);
    }
    return (cpuMicroseconds() - start) / times;
  });
  print("parse, validate, write the reply", microseconds);
}

/** Sends requests over connections of their own, one after the other on each, until so many are answered. */
async function microsecondsPerRequest(port: number, connections: number): Promise<number> {
  const request = Buffer.concat([
    Buffer.from(
      `POST /v2/models/identity/infer HTTP/1.1\r\nHost: localhost:${port}\r\n` +
        `Inference-Header-Content-Length: ${head.length}\r\nContent-Length: ${body.length}\r\n\r\n`,
    ),
    body,
  ]);
  let left = 20_000;
  const start = cpuMicroseconds();
  const run = (): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const socket = connect(port, "127.0.0.1", () => socket.write(request));
    socket.setNoDelay(true);
    socket.on("error", reject);
    socket.on("data", (answer: Buffer) => {
      if (answer.subarray(9, 12).toString() !== "200") reject(new Error(answer.toString()));
      left -= 1;
      if (left > 0) socket.write(request);
      else socket.end(resolve);
    });
    return promise;
  };
  await Promise.race(Array.from({ length: connections }, run));
  return (cpuMicroseconds() - start) / 20_000;
}

/** What a server that does nothing else would answer. */
function someAnswer(): Buffer {
  const { head: reply } = inferReply(
    {
      modelName: "identity",
      modelVersion: "1",
      id: "",
      parameters: noParameters,
      outputs: [{ name: "OUTPUT0", datatype: "FP32", shape: [1, 16], bytes: new Uint8Array(64) }],
    },
    "all",
  );
  return Buffer.concat([Buffer.from(reply), Buffer.alloc(64)]);
}

function bareServer(): Server {
  const answer = someAnswer();
  return createServer((incoming, outgoing) => {
    incoming.on("data", () => undefined);
    incoming.on("end", () => {
      outgoing.writeHead(200, { "Content-Length": answer.length }).end(answer);
    });
  });
}

function honoServer(): Server {
  const answer = new Uint8Array(someAnswer());
  const app = new Hono();
  app.post("/v2/models/:model/infer", async (context) => {
    await context.req.arrayBuffer();
    return context.body(answer);
  });
  const listener = getRequestListener(app.fetch);
  return createServer((incoming, outgoing) => void listener(incoming, outgoing));
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (typeof address !== "object" || !address) throw new Error("no port");
  return address.port;
}

async function wholePath(): Promise<void> {
  const engine = new MemoryEngine();
  engine.add(model, (request) => [echo(request)]);
  const log = new SilentLog();
  const plane = new DataPlane(engine, { name: "tidepool", version: "1", extensions: [] });
  const app = createHttpApp(plane, { maxInputBytes: 2 ** 26, log, logSettings: log });
  const ours = await listenHttp(app, { host: "127.0.0.1", port: 0 });
  const servers = { bare: bareServer(), hono: honoServer() };
  const ports = {
    "node:http": await listening(servers.bare),
    "node:http and Hono": await listening(servers.hono),
    "node:http, Hono, the whole path and an echo": ours.port,
  };
  const least = new Map<string, number>();
  for (let round = 0; round < 5; round += 1) {
    for (const [name, port] of Object.entries(ports)) {
      const microseconds = await microsecondsPerRequest(port, 16);
      least.set(name, Math.min(least.get(name) ?? Infinity, microseconds));
    }
  }
  for (const [name, microseconds] of least) print(name, microseconds);
}

codec();
await wholePath();
process.exit();
