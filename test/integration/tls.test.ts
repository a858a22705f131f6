import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { python } from "../conformance/python.ts";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { eventually } from "../helpers/eventually.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { TestAuthority } from "../helpers/test-authority.ts";
import {
  startTidepool,
  type TidepoolCommand,
  type TidepoolProcess,
} from "../helpers/tidepool-process.ts";

const run = promisify(execFile);

const models = new ModelDirectory();
models.model("steady", { 1: addingModel(1) });
let authority: TestAuthority;
beforeAll(async () => {
  authority = await TestAuthority.create();
  for (const name of ["first", "second", "client"]) await authority.issue(name);
});
afterAll(() => {
  models.remove();
  authority.remove();
});

/** Gives what curl prints; rejects with what it complains of. */
async function curl(...args: readonly string[]): Promise<string> {
  return (await run("curl", ["-sS", "--max-time", "20", ...args])).stdout;
}

/** The protocol that openssl's own client agrees on, and the certificate that it is shown. */
async function handshake(address: string, protocol: string): Promise<string> {
  const connect = `openssl s_client -connect ${address} -alpn ${protocol} -CAfile ${authority.certificate}`;
  return (await run("bash", ["-c", `${connect} -verify_return_error </dev/null`])).stdout;
}

async function askTriton(
  server: TidepoolProcess,
  protocol: "http" | "grpc",
  rounds: number,
  pair: readonly string[] = [],
): Promise<number> {
  const script = path.join(import.meta.dirname, "tls-client.py");
  const address = server[protocol].replace("127.0.0.1", "localhost");
  const args = [protocol, address, String(rounds), authority.certificate, ...pair];
  return Number((await run(python, [script, ...args], { timeout: 60_000 })).stdout);
}

describe.each<TidepoolCommand>(["serve", "dev"])("tidepool %s with TLS", (command) => {
  let server: TidepoolProcess;
  beforeAll(async () => {
    authority.replace("served", "first");
    const { certificate, key } = authority.paths("served");
    const tls = [`--tls-cert=${certificate}`, `--tls-key=${key}`];
    server = await startTidepool([`--model-repository=${models.path}`, ...tls], command);
  }, 60_000);
  afterAll(() => server.stop());

  it("answers curl on every port, which checks the certificate", async () => {
    const trust = ["--cacert", authority.certificate];
    const infer = `https://${server.http}/v2/models/steady/infer`;
    const answer = await curl(...trust, infer, "-d", JSON.stringify(addingBody));
    expect(JSON.parse(answer)).toMatchObject({ outputs: [{ data: [1] }] });
    expect(await curl(...trust, `https://${server.metrics}/metrics`)).toContain(
      'tidepool_tls_certificate_not_after_seconds{port="grpc"}',
    );
    expect(await curl(...trust, `https://${server.metrics}/v2/health/ready`)).toBe("");
    await expect(curl(infer)).rejects.toThrow("unable to get local issuer certificate");
    expect(await curl(infer.replace("https", "http"))).toContain("this port speaks TLS");
  });

  it("agrees on the protocol with openssl", async () => {
    expect(await handshake(server.http, "h2,http/1.1")).toContain("ALPN protocol: http/1.1");
    expect(await handshake(server.grpc, "h2")).toContain("ALPN protocol: h2");
  });

  it("answers tritonclient while its certificate changes", async () => {
    const asked = Promise.all([askTriton(server, "http", 40), askTriton(server, "grpc", 40)]);
    for (const name of ["second", "first", "second"]) {
      authority.replace("served", name);
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await eventually(async () =>
        expect(await handshake(server.http, "http/1.1")).toContain(`subject=CN = ${name}`),
      );
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect(await handshake(server.grpc, "h2")).toContain(`subject=CN = ${name}`);
    }
    expect(await asked).toEqual([200, 200]);
    const read = server.lines.filter(({ msg }) => msg === "the certificate was read again");
    expect(read).toHaveLength(3);
  }, 90_000);
});

describe.each<TidepoolCommand>(["serve", "dev"])("tidepool %s with mutual TLS", (command) => {
  let server: TidepoolProcess;
  beforeAll(async () => {
    const { certificate, key } = authority.paths("first");
    const tls = [`--tls-cert=${certificate}`, `--tls-key=${key}`, "--metrics-tls=false"];
    const args = [`--model-repository=${models.path}`, ...tls];
    server = await startTidepool([...args, `--tls-client-ca=${authority.certificate}`], command);
  }, 60_000);
  afterAll(() => server.stop());

  it("answers who shows a certificate, and nobody else", async () => {
    const { certificate, key } = authority.paths("client");
    const url = `https://${server.http}/v2`;
    const trust = ["--cacert", authority.certificate, url];
    expect(await curl(...trust, "--cert", certificate, "--key", key)).toContain("tidepool");
    await expect(curl(...trust)).rejects.toThrow("certificate required");
    expect(await askTriton(server, "http", 1, [certificate, key])).toBe(5);
    expect(await askTriton(server, "grpc", 1, [certificate, key])).toBe(5);
    await expect(askTriton(server, "grpc", 1)).rejects.toThrow("UNAVAILABLE");
  }, 60_000);

  it("lets probes without one at the port of the metrics, where that is said", async () => {
    const probe = await fetch(`http://${server.metrics}/v2/health/ready`);
    expect(probe.status).toBe(200);
  });
});

describe("tidepool serve with Triton's own flags for TLS", () => {
  it("serves gRPC over TLS, and HTTP without", async () => {
    const { certificate, key } = authority.paths("first");
    const server = await startTidepool([
      `--model-repository=${models.path}`,
      "--grpc-use-ssl-mutual=true",
      `--grpc-server-cert=${certificate}`,
      `--grpc-server-key=${key}`,
      `--grpc-root-cert=${authority.certificate}`,
    ]);
    const client = authority.paths("client");
    expect(await askTriton(server, "grpc", 1, [client.certificate, client.key])).toBe(5);
    expect((await fetch(`http://${server.http}/v2`)).status).toBe(200);
    await server.stop();
  }, 60_000);

  it("does not start without a file that is named, and names it", async () => {
    const { key } = authority.paths("first");
    const gone = `${authority.folder}/gone.pem`;
    const args = ["serve", `--model-repository=${models.path}`, `--tls-cert=${gone}`];
    const started = run(process.execPath, ["cli/main.ts", ...args, `--tls-key=${key}`]);
    await expect(started).rejects.toThrow(/--tls-cert, --tls-key, --tls-client-ca: .*gone\.pem/u);
  }, 30_000);
});
