import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import type { CertificatePaths } from "../../gateway/tls/find-certificate.ts";

const run = promisify(execFile);

/** Where the set-up puts the program of a machine that has none. */
const brought = path.resolve(import.meta.dirname, "../../.tidepool/debian/openssl/usr/bin");

/** An authority with a folder of its own, and what it has signed there. */
export class TestAuthority {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async create(name = "test authority"): Promise<TestAuthority> {
    const authority = new TestAuthority(mkdtempSync(path.join(tmpdir(), "tidepool-tls-")));
    writeFileSync(authority.#file("openssl.cnf"), "[req]\ndistinguished_name=name\n[name]\n");
    const rights = ["-addext", "basicConstraints=critical,CA:TRUE"];
    await authority.#make("ca", name, ["-days", "3650", ...rights]);
    return authority;
  }

  /** The file of its own certificate. */
  get certificate(): string {
    return this.#file("ca.pem");
  }

  /** Signs a new pair for localhost; the files have the name, in the authority's folder. */
  async issue(name: string, { days = 365, subject = name } = {}): Promise<CertificatePaths> {
    const signer = ["-CA", this.certificate, "-CAkey", this.#file("ca-key.pem")];
    const names = "subjectAltName=DNS:localhost,IP:127.0.0.1";
    await this.#make(name, subject, [...signer, "-days", String(days), "-addext", names]);
    return this.paths(name);
  }

  /** Of a pair with the name, whether it is there or not. */
  paths(name: string): CertificatePaths {
    return { certificate: this.#file(`${name}.pem`), key: this.#file(`${name}-key.pem`) };
  }

  /** Puts the pair of one name where another one lies. */
  replace(name: string, by: string): void {
    const [from, to] = [this.paths(by), this.paths(name)];
    cpSync(from.key, to.key);
    cpSync(from.certificate, to.certificate);
  }

  /** The same as a client shows it. */
  read(name: string): { readonly cert: Buffer; readonly key: Buffer; readonly ca: Buffer } {
    const { certificate, key } = this.paths(name);
    return {
      cert: readFileSync(certificate),
      key: readFileSync(key),
      ca: readFileSync(this.certificate),
    };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #file(name: string): string {
    return path.join(this.folder, name);
  }

  async #make(name: string, subject: string, more: readonly string[]): Promise<void> {
    const { certificate, key } = this.paths(name);
    const made = ["-keyout", key, "-out", certificate, "-subj", `/CN=${subject}`];
    const kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    await run("openssl", ["req", "-config", this.#file("openssl.cnf"), ...kind, ...made, ...more], {
      env: { ...process.env, PATH: `${process.env["PATH"]}:${brought}` },
    });
  }
}
