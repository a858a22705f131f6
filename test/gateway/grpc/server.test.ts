import { once } from "node:events";
import { readFileSync } from "node:fs";
import * as http2 from "node:http2";
import { connect } from "node:net";
import path from "node:path";
import { connect as connectTls } from "node:tls";
import { credentials, Metadata, status } from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import { createGrpcServer } from "../../../gateway/grpc/server.ts";
import { DataPlane } from "../../../gateway/data-plane.ts";
import {
  CertificateFiles,
  type CertificateFilesOptions,
} from "../../../gateway/tls/certificate-files.ts";
import type { PortTls } from "../../../gateway/tls/secure-server.ts";
import { eventually } from "../../helpers/eventually.ts";
import { echo } from "../../helpers/memory-engine.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { collect } from "../../helpers/grpc-client.ts";
import { rawConnection } from "../../helpers/raw-connection.ts";
import { SilentLog } from "../../helpers/silent-log.ts";
import { TestAuthority } from "../../helpers/test-authority.ts";
import { floats, GrpcStand } from "./grpc-stand.ts";

function fixture(name: string): string {
  return path.resolve(import.meta.dirname, `../../fixtures/tls/${name}.pem`);
}

function pem(name: string): Buffer {
  return readFileSync(fixture(name));
}

const ownPair = { certificate: fixture("server"), key: fixture("server-key") };

async function portTls(options: Partial<CertificateFilesOptions>): Promise<PortTls> {
  const log = new SilentLog();
  const certificate = await CertificateFiles.open({ paths: ownPair, log, ...options });
  onTestFinished(() => certificate.close());
  return { certificate, log };
}

/** Whom the certificate names that a new connection is shown. */
async function subjectAt(port: number, ca: Buffer): Promise<unknown> {
  const socket = connectTls({ host: "localhost", port, ca, ALPNProtocols: ["h2"] });
  await once(socket, "secureConnect");
  const { CN } = socket.getPeerCertificate().subject;
  socket.destroy();
  return CN;
}

const rank2 = {
  input: [modelInput("INPUT", "TYPE_FP32", [1, 1])],
  output: [modelOutput("OUTPUT", "TYPE_FP32", [1, 1])],
};

/** A model whose answers wait until they are let go. */
function addGate(stand: GrpcStand): { readonly asked: Promise<void>; readonly open: () => void } {
  const asked = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  stand.engine.add(servedModel("gate", rank2), async function* (request) {
    asked.resolve();
    await opened.promise;
    yield echo(request);
  });
  return { asked: asked.promise, open: opened.resolve };
}

const never = new AbortController().signal;

describe("createGrpcServer", () => {
  it("rejects when the port is taken", async () => {
    const stand = await GrpcStand.start();
    const plane = new DataPlane(stand.engine, { name: "t", version: "1", extensions: [] });
    const second = createGrpcServer(plane, { log: stand.log, logSettings: stand.log });
    await expect(second.listen({ host: "127.0.0.1", port: stand.port })).rejects.toMatchObject({
      code: "EADDRINUSE",
    });
    await second.close(never);
    await stand.stop();
  });

  it("lets two servers share a port", async () => {
    const stand = await GrpcStand.start();
    const plane = new DataPlane(stand.engine, { name: "t", version: "1", extensions: [] });
    const options = { log: stand.log, logSettings: stand.log };
    const [first, second] = [createGrpcServer(plane, options), createGrpcServer(plane, options)];
    const port = await first.listen({ host: "127.0.0.1", port: 0, reusePort: true });
    expect(await second.listen({ host: "127.0.0.1", port, reusePort: true })).toBe(port);
    await Promise.all([first.close(never), second.close(never), stand.stop()]);
  });

  it("finishes what is under way before it closes", async () => {
    const stand = await GrpcStand.start();
    const gate = addGate(stand);
    const answer = stand.infer(floats([1], { modelName: "gate" }));
    await gate.asked;
    const closed = stand.server.close(never);
    gate.open();
    expect(await answer).toMatchObject({ modelName: "gate" });
    stand.client.close();
    await closed;
    await expect(connectTo(stand.port)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });

  it("answers what a stream has asked, then ends it with UNAVAILABLE", async () => {
    const stand = await GrpcStand.start();
    const gate = addGate(stand);
    const stream = stand.stream();
    stream.write(floats([1], { modelName: "gate", id: "last" }));
    await gate.asked;
    const closed = stand.server.close(never);
    gate.open();
    const seen: unknown[] = [];
    stream.on("data", (response: unknown) => seen.push(response));
    const ended = Promise.withResolvers<unknown>();
    stream.on("error", ended.resolve);
    expect(await ended.promise).toMatchObject({ code: status.UNAVAILABLE });
    expect(seen).toMatchObject([{ inferResponse: { id: "last" } }]);
    stand.client.close();
    await closed;
  });

  it("cuts off what is still under way when the signal comes", async () => {
    const stand = await GrpcStand.start();
    const gate = addGate(stand);
    const answer = stand.infer(floats([1], { modelName: "gate" }));
    answer.catch(() => {});
    await gate.asked;
    await stand.server.close(AbortSignal.timeout(20));
    await expect(answer).rejects.toMatchObject({ code: expect.any(Number) });
    stand.client.close();
  });

  it("carries messages far beyond gRPC's usual 4 MB, both ways", async () => {
    const stand = await GrpcStand.start();
    const values = new Float32Array(4_000_000).fill(1.5);
    const rawInputContents = [Buffer.from(values.buffer)];
    const inputs = [{ name: "INPUT", datatype: "FP32", shape: [1, values.length] }];
    const response = await stand.infer({ modelName: "echo_FP32", inputs, rawInputContents });
    expect(rawInputContents[0]?.equals(response["rawOutputContents"][0])).toBe(true);
    await stand.stop();
  });

  it("takes compressed requests", async () => {
    const stand = await GrpcStand.start();
    const metadata = new Metadata();
    metadata.set("grpc-internal-encoding-request", "gzip");
    expect(await stand.infer(floats([1]), metadata)).toMatchObject({ modelName: "echo_FP32" });
    await stand.stop();
  });
});

describe("HTTP/2 windows", () => {
  it("lets a client send far more than 64 KiB before it must wait", async () => {
    const stand = await GrpcStand.start();
    const session = http2.connect(`http://127.0.0.1:${stand.port}`);
    const settings = Promise.withResolvers<http2.Settings>();
    session.on("remoteSettings", (given) => {
      if (given.initialWindowSize !== 65_535) settings.resolve(given);
    });
    const call = session.request({
      ":method": "POST",
      ":path": "/inference.GRPCInferenceService/ServerLive",
      "content-type": "application/grpc",
    });
    call.end(Buffer.alloc(5));
    expect(await settings.promise).toMatchObject({ initialWindowSize: 4 * 1024 * 1024 });
    session.destroy();
    await stand.stop();
  });
});

describe("createGrpcServer with TLS", () => {
  const authority = pem("ca");

  it("answers ordinary calls, all others, and large messages", async () => {
    const tls = await portTls({});
    const stand = await GrpcStand.start({ tls }, credentials.createSsl(authority));
    expect(await stand.ask("ServerLive", {})).toEqual({ live: true });
    expect(await stand.infer(floats([1, 2]))).toMatchObject({ modelName: "echo_FP32" });
    const many = Array.from({ length: 500_000 }, (_, i) => i);
    const large = await stand.infer(floats(many));
    expect(large["rawOutputContents"][0]).toHaveLength(2_000_000);
    await stand.stop();
  });

  it("ends handshakes that are under way when it closes", async () => {
    const stand = await GrpcStand.start({ tls: await portTls({}) });
    const silent = await rawConnection(`127.0.0.1:${stand.port}`);
    stand.client.close();
    await stand.server.close(never);
    expect(await silent.ended).toHaveLength(0);
  });

  it("gives new connections a new certificate, and keeps those that are open", async () => {
    const issuer = await TestAuthority.create();
    await Promise.all(["served", "next"].map((name) => issuer.issue(name)));
    const { ca } = issuer.read("served");
    const tls = await portTls({ paths: issuer.paths("served"), lookMilliseconds: 20 });
    const stand = await GrpcStand.start({ tls }, credentials.createSsl(ca));
    const stream = stand.stream();
    const answers = stream[Symbol.asyncIterator]();
    stream.write(floats([1]));
    expect(await answers.next()).toMatchObject({ done: false });
    issuer.replace("served", "next");
    await eventually(async () => expect(await subjectAt(stand.port, ca)).toBe("next"));
    stream.write(floats([2]));
    expect(await answers.next()).toMatchObject({ done: false });
    expect(await stand.infer(floats([1]))).toMatchObject({ modelName: "echo_FP32" });
    stream.end();
    await stand.stop();
    issuer.remove();
  });

  it("asks for a client's certificate when that is wanted", async () => {
    const tls = await portTls({ paths: { ...ownPair, clientAuthority: fixture("ca") } });
    const stranger = await GrpcStand.start({ tls }, credentials.createSsl(authority));
    await expect(stranger.ask("ServerLive", {})).rejects.toMatchObject({
      code: status.UNAVAILABLE,
    });
    await stranger.stop();
    const known = credentials.createSsl(authority, pem("client-key"), pem("client"));
    const stand = await GrpcStand.start({ tls }, known);
    expect(await stand.ask("ServerLive", {})).toEqual({ live: true });
    const stream = stand.stream();
    stream.end(floats([1]));
    expect(await collect(stream)).toHaveLength(1);
    await stand.stop();
  });
});

function connectTo(port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  connect(port, "127.0.0.1", resolve).on("error", reject);
  return promise;
}
