import type { SecureContextOptions } from "node:tls";
import type { Logger } from "../../telemetry/logger.ts";
import {
  type CertificatePaths,
  type FoundCertificate,
  findCertificate,
  type LoadedCertificate,
} from "./find-certificate.ts";

export interface CertificateFilesOptions {
  readonly paths: CertificatePaths;
  readonly log: Logger;
  /** @defaultValue 1000 */
  readonly lookMilliseconds?: number;
  /** Milliseconds since the epoch. @defaultValue Date.now */
  readonly now?: () => number;
}

const dayMilliseconds = 86_400_000;
const warnedDays = 14;

/**
 * What a server proves itself with, read from files and read again when they change. Files are written one after the
 * other, and by whom we do not know: so new ones count when two looks found the same, and only if they fit together.
 */
export class CertificateFiles {
  readonly #options: CertificateFilesOptions;
  readonly #listeners = new Set<() => void>();
  readonly #timer: NodeJS.Timeout;
  #loaded: LoadedCertificate;
  /** What the last look found, and what was last taken or refused. */
  #seen: string;
  #judged: string;
  #warned = false;

  private constructor(options: CertificateFilesOptions, found: FoundCertificate) {
    this.#options = options;
    this.#loaded = found.load();
    this.#seen = found.text;
    this.#judged = found.text;
    this.#warnOfEnd();
    const look = (): void => void this.#look();
    this.#timer = setInterval(look, options.lookMilliseconds ?? 1000).unref();
  }

  /** Rejects with an error that names the file when one cannot be read, is no PEM, or does not fit the others. */
  static async open(options: CertificateFilesOptions): Promise<CertificateFiles> {
    return new CertificateFiles(options, await findCertificate(options.paths));
  }

  /** As a server takes it, now or by `setSecureContext`. */
  get context(): SecureContextOptions {
    return this.#loaded.context;
  }

  /** True where every client must show a certificate. */
  get asksClients(): boolean {
    return this.#options.paths.clientAuthority !== undefined;
  }

  /** When the server's certificate ends, in milliseconds since the epoch. */
  get notAfter(): number {
    return this.#loaded.notAfter;
  }

  /** Called whenever `context` is another. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    const { paths, log } = this.#options;
    const { text, load } = await findCertificate(paths);
    const settled = text === this.#seen;
    this.#seen = text;
    if (settled && text !== this.#judged) {
      this.#judged = text;
      try {
        this.#take(load());
      } catch (err) {
        log.error("the new certificate cannot be used; the one before stays", { err });
      }
    }
    this.#warnOfEnd();
  }

  #take(loaded: LoadedCertificate): void {
    this.#loaded = loaded;
    this.#warned = false;
    for (const listener of this.#listeners) listener();
    const { paths, log } = this.#options;
    log.info("the certificate was read again", { certificate: paths.certificate, ...this.#ends() });
  }

  #warnOfEnd(): void {
    const { paths, log, now = Date.now } = this.#options;
    if (this.#warned || this.notAfter - now() >= warnedDays * dayMilliseconds) return;
    this.#warned = true;
    const text = this.notAfter > now() ? `ends within ${warnedDays} days` : "has ended";
    log.warn(`the certificate ${text}`, { certificate: paths.certificate, ...this.#ends() });
  }

  #ends(): { readonly notAfter: string } {
    return { notAfter: new Date(this.notAfter).toISOString() };
  }
}
