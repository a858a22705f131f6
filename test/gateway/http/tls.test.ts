import { once } from "node:events";
import { Agent, request as httpsRequest } from "node:https";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { CertificateFiles } from "../../../gateway/tls/certificate-files.ts";
import type { PortTls } from "../../../gateway/tls/secure-server.ts";
import { eventually } from "../../helpers/eventually.ts";
import { rawConnection } from "../../helpers/raw-connection.ts";
import { SilentLog } from "../../helpers/silent-log.ts";
import { echo } from "../../helpers/memory-engine.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { TestAuthority } from "../../helpers/test-authority.ts";
import { HttpStand } from "./http-stand.ts";

let authority: TestAuthority;
beforeAll(async () => {
  authority = await TestAuthority.create();
  for (const name of ["first", "second", "client"]) await authority.issue(name);
});
afterAll(() => authority.remove());

interface TlsStand {
  readonly stand: HttpStand;
  readonly log: SilentLog;
  readonly connect: (options?: ConnectionOptions) => Promise<TLSSocket>;
}

async function startStand({
  mutual = false,
  handshakeMilliseconds = 10_000,
} = {}): Promise<TlsStand> {
  authority.replace("served", "first");
  const log = new SilentLog();
  log.update({ logVerboseLevel: 1 });
  const paths = {
    ...authority.paths("served"),
    ...(mutual && { clientAuthority: authority.certificate }),
  };
  const certificate = await CertificateFiles.open({ paths, log, lookMilliseconds: 20 });
  const tls: PortTls = { certificate, log, handshakeMilliseconds };
  const stand = await HttpStand.start({}, { tls });
  onTestFinished(async () => {
    certificate.close();
    await stand.stop();
  });
  return {
    stand,
    log,
    async connect(options = {}) {
      const { port } = stand.server;
      const socket = connect({
        host: "localhost",
        port,
        ca: authority.read("first").ca,
        ...options,
      });
      socket.on("error", () => {});
      await once(socket, "secureConnect");
      return socket;
    },
  };
}

function infer(length: number, more = ""): string {
  const data = Array.from({ length }, () => 1).join(",");
  const body = `{"inputs":[{"name":"IN0","shape":[${length}],"datatype":"FP32","data":[${data}]}]}`;
  return `POST /v2/models/id_fp32/infer HTTP/1.1\r\nHost: x\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`;
}

/** Writes and gives what came back when it holds the text. */
async function exchange(socket: TLSSocket, text: string, expected: string): Promise<string> {
  let received = "";
  const gather = (chunk: Buffer): void => void (received += chunk.toString("latin1"));
  socket.on("data", gather);
  socket.write(text);
  await eventually(() => expect(received).toContain(expected));
  socket.off("data", gather);
  return received;
}

describe("listenHttp with TLS", () => {
  it("answers plain calls, all others, and large bodies on one connection", async () => {
    const { connect: open } = await startStand();
    const socket = await open({ ALPNProtocols: ["h2", "http/1.1"] });
    expect(socket.alpnProtocol).toBe("http/1.1");
    for (let i = 0; i < 3; i++) {
      expect(await exchange(socket, infer(4), '"data":[1.0,1.0,1.0,1.0]')).toMatch(
        /^HTTP\/1\.1 200 OK/u,
      );
    }
    expect(await exchange(socket, infer(60_000), "]}]}")).toMatch(/^HTTP\/1\.1 200 OK/u);
    const other = "GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n";
    expect(await exchange(socket, other, '"tidepool"')).toMatch(/^HTTP\/1\.1 200 OK/u);
    socket.destroy();
  });

  it("refuses a protocol that it does not speak, and TLS older than 1.2", async () => {
    const { connect: open } = await startStand();
    await expect(open({ ALPNProtocols: ["h2"] })).rejects.toMatchObject({
      code: "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL",
    });
    const old = { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "ALL@SECLEVEL=0" } as const;
    await expect(open(old)).rejects.toMatchObject({
      code: "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION",
    });
    const socket = await open({ maxVersion: "TLSv1.2" });
    expect(socket.getProtocol()).toBe("TLSv1.2");
    socket.destroy();
  });

  it("tells a client without TLS, in plain words", async () => {
    const { stand } = await startStand();
    const address = `127.0.0.1:${stand.server.port}`;
    const { ended } = await rawConnection(address, "GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(String(await ended)).toMatch(
      /^HTTP\/1\.1 400 .*this port speaks TLS: given a request without it, expected https/su,
    );
    const noise = await rawConnection(address, Buffer.alloc(100, 0x41));
    expect(String(await noise.ended)).not.toContain("HTTP/1.1 200");
  });

  it.each([
    ["that says nothing", 60_000],
    ["that sends its handshake byte by byte", 100],
  ])("ends a connection %s", async (_, dripMilliseconds) => {
    const { stand, log } = await startStand({ handshakeMilliseconds: 300 });
    const { socket, ended } = await rawConnection(`127.0.0.1:${stand.server.port}`);
    // A record of a handshake with 512 bytes, of which no more come than these.
    const hello = Buffer.concat([Buffer.of(22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3), Buffer.alloc(40)]);
    let sent = 0;
    const drip = setInterval(() => socket.write(hello.subarray(sent, ++sent)), dripMilliseconds);
    expect(await ended).toHaveLength(0);
    clearInterval(drip);
    expect(sent).toBeLessThan(40);
    expect(log.verboseLines).toContainEqual([
      "a TLS handshake failed",
      expect.objectContaining({ reason: "ERR_TLS_HANDSHAKE_TIMEOUT" }),
    ]);
  });

  it("lets in who shows a certificate of the authority, and nobody else", async () => {
    const { connect: open, log } = await startStand({ mutual: true });
    const { cert, key } = authority.read("client");
    const socket = await open({ cert, key });
    expect(await exchange(socket, infer(2), '"data":[1.0,1.0]')).toContain("200 OK");
    socket.destroy();
    expect(log.verboseLines).toContainEqual([
      "a client showed its certificate",
      expect.objectContaining({ subject: "CN=client" }),
    ]);
    const stranger = await TestAuthority.create();
    await stranger.issue("client");
    const wrong = stranger.read("client");
    stranger.remove();
    for (const shown of [{}, { cert: wrong.cert, key: wrong.key }]) {
      const refused = await open(shown);
      let received = "";
      refused.on("data", (chunk) => void (received += chunk));
      const closed = Promise.withResolvers<void>();
      refused.on("close", closed.resolve);
      refused.write(infer(2));
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await closed.promise;
      expect(received).toBe("");
    }
  });

  it("answers what it has taken before it closes, and does not wait for handshakes", async () => {
    const { stand, connect: open } = await startStand();
    const taken = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const config = {
      input: [modelInput("IN0", "TYPE_FP32", [1])],
      output: [modelOutput("OUT0", "TYPE_FP32", [1])],
    };
    stand.engine.add(servedModel("held", config), async function* (request) {
      taken.resolve();
      await gate.promise;
      yield echo(request);
    });
    const silent = await rawConnection(`127.0.0.1:${stand.server.port}`);
    const socket = await open();
    const answer = exchange(socket, infer(1).replace("id_fp32", "held"), '"data":[1.0]');
    await taken.promise;
    const closed = stand.server.close(new AbortController().signal);
    expect(await silent.ended).toHaveLength(0);
    gate.resolve();
    expect(await answer).toContain("Connection: close");
    await closed;
  });

  it("drops no request while the certificate changes under load", async () => {
    const { stand } = await startStand();
    const { ca } = authority.read("first");
    const agents = [
      new Agent({ keepAlive: true, maxSockets: 4, ca }),
      new Agent({ keepAlive: false, maxSockets: 4, ca, maxCachedSessions: 0 }),
    ];
    const subjects = new Set<string>();
    const over = new AbortController();
    const load = Array.from({ length: 8 }, async (_, i) => {
      let count = 0;
      for (; !over.signal.aborted; count++) {
        // oxlint-disable-next-line no-await-in-loop -- one after the other, as a client does
        subjects.add(await ask(stand, agents[i % 2]));
      }
      return count;
    });
    for (const name of ["second", "first", "second"]) {
      subjects.clear();
      authority.replace("served", name);
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await eventually(() => expect(subjects).toContain(`CN=${name}`));
    }
    over.abort();
    expect(Math.min(...(await Promise.all(load)))).toBeGreaterThan(0);
    for (const agent of agents) agent.destroy();
  });
});

/** Gives the subject of the certificate that the connection began with; rejects unless the answer is good. */
function ask(stand: HttpStand, agent: Agent | undefined): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const options = { host: "localhost", port: stand.server.port, method: "POST", agent };
  const body = '{"inputs":[{"name":"IN0","shape":[1],"datatype":"FP32","data":[1]}]}';
  const headers = { "Content-Length": body.length };
  const path = "/v2/models/id_fp32/infer";
  const request = httpsRequest({ ...options, path, headers }, (response) => {
    const { socket } = response;
    const subject = "getPeerCertificate" in socket ? subjectOf(socket) : "";
    response.on("error", reject);
    response.on("end", () => {
      if (response.statusCode === 200) resolve(subject);
      else reject(new Error(`status ${response.statusCode}`));
    });
    response.resume();
  });
  request.on("error", reject);
  request.end(body);
  return promise;
}

function subjectOf(socket: object): string {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the agent is one of node:https
  return `CN=${String((socket as TLSSocket).getPeerCertificate().subject.CN)}`;
}
