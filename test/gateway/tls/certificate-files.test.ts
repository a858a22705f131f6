import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { CertificateFiles } from "../../../gateway/tls/certificate-files.ts";
import type { CertificatePaths } from "../../../gateway/tls/find-certificate.ts";
import { eventually } from "../../helpers/eventually.ts";
import { SilentLog } from "../../helpers/silent-log.ts";
import { TestAuthority } from "../../helpers/test-authority.ts";

let authority: TestAuthority;
beforeAll(async () => {
  authority = await TestAuthority.create();
  await authority.issue("first");
  await authority.issue("second");
  await authority.issue("short", { days: 10 });
});
afterAll(() => authority.remove());

const dayMilliseconds = 86_400_000;

function otherKind(): string | Buffer {
  const { privateKey } = generateKeyPairSync("ed25519");
  return privateKey.export({ type: "pkcs8", format: "pem" });
}

async function follow(
  name: string,
  more: { clientAuthority?: string; now?: () => number } = {},
): Promise<{
  files: CertificateFiles;
  log: SilentLog;
  paths: CertificatePaths;
  served: () => string;
}> {
  const { now, ...authorities } = more;
  authority.replace("served", name);
  const paths = { ...authority.paths("served"), ...authorities };
  const log = new SilentLog();
  const options = { paths, log, lookMilliseconds: 20, ...(now && { now }) };
  const files = await CertificateFiles.open(options);
  onTestFinished(() => files.close());
  const served = (): string => new X509Certificate(String(files.context.cert)).subject;
  return { files, log, paths, served };
}

describe("CertificateFiles", () => {
  it("gives what lies in the files, and TLS 1.2 at least", async () => {
    const { files, served, log } = await follow("first");
    expect(served()).toBe("CN=first");
    expect(files.context.minVersion).toBe("TLSv1.2");
    expect(files.asksClients).toBe(false);
    expect(files.notAfter).toBeGreaterThan(Date.now() + 360 * dayMilliseconds);
    expect(log.warnings).toEqual([]);
  });

  it("takes new files, and tells who listens", async () => {
    const { files, served } = await follow("first");
    const changed = Promise.withResolvers<void>();
    files.onChange(changed.resolve);
    authority.replace("served", "second");
    await changed.promise;
    expect(served()).toBe("CN=second");
  });

  it.each([
    ["are half written", (paths: CertificatePaths) => writeFileSync(paths.certificate, "-----BEG")],
    ["are of different pairs", (paths) => cpSync(authority.paths("second").key, paths.key)],
    ["have a key of another kind", (paths) => writeFileSync(paths.key, otherKind())],
    ["are away", (paths) => rmSync(paths.key)],
  ] satisfies [string, (paths: CertificatePaths) => void][])(
    "keeps the old ones, says so once, and goes on when new ones %s",
    async (_, breakThem) => {
      const { paths, served, log } = await follow("first");
      breakThem(paths);
      await eventually(() => expect(log.errors).toHaveLength(1));
      expect(log.errors[0]?.[0]).toBe("the new certificate cannot be used; the one before stays");
      expect(String(log.errors[0]?.[1]["err"])).toContain(authority.folder);
      expect(served()).toBe("CN=first");
      authority.replace("served", "second");
      await eventually(() => expect(served()).toBe("CN=second"));
      expect(log.errors).toHaveLength(1);
    },
  );

  it("warns once of a certificate that ends soon, and of the next one again", async () => {
    const { log, files } = await follow("short");
    expect(log.warnings).toEqual(["the certificate ends within 14 days"]);
    const changed = Promise.withResolvers<void>();
    files.onChange(changed.resolve);
    await authority.issue("shorter", { days: 3 });
    authority.replace("served", "shorter");
    await changed.promise;
    await eventually(() => expect(log.warnings).toHaveLength(2));
  });

  it("warns of a certificate that comes to its end while it is served, and of one that has ended", async () => {
    let time = Date.now();
    const { log } = await follow("first", { now: () => time });
    expect(log.warnings).toEqual([]);
    time += 355 * dayMilliseconds;
    await eventually(() => expect(log.warnings).toHaveLength(1));
    const ended = await follow("first", { now: () => Date.now() + 400 * dayMilliseconds });
    expect(ended.log.warnings).toEqual(["the certificate has ended"]);
  });

  it("follows the authority of clients, too", async () => {
    const file = `${authority.folder}/clients.pem`;
    cpSync(authority.certificate, file);
    const { files, log } = await follow("first", { clientAuthority: file });
    expect(files.asksClients).toBe(true);
    writeFileSync(file, "nobody");
    await eventually(() => expect(log.errors).toHaveLength(1));
    expect(String(log.errors[0]?.[1]["err"])).toContain("clients.pem holds no certificate in PEM");
    const other = authority.paths("second").certificate;
    cpSync(other, file);
    await eventually(() => expect(String(files.context.ca)).toBe(String(readFileSync(other))));
  });

  it.each([
    ["that is not there", "nowhere", /ENOENT.*nowhere\.pem/u],
    ["that holds something else", "openssl.cnf", /openssl\.cnf holds no certificate in PEM/u],
  ])("does not open with a file %s", async (_, name, message) => {
    const { key, ...first } = authority.paths("first");
    const named = name.includes(".")
      ? `${authority.folder}/${name}`
      : authority.paths(name).certificate;
    const paths = { ...first, key, certificate: named };
    await expect(CertificateFiles.open({ paths, log: new SilentLog() })).rejects.toThrow(message);
  });
});
