import { createHash, createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext, type SecureContextOptions } from "node:tls";

/** PEM files. */
export interface CertificatePaths {
  /** The server's own certificate, and behind it those between it and the authority. */
  readonly certificate: string;
  readonly key: string;
  /** Who signs clients' certificates: every client must show one. Without it none is asked for one. */
  readonly clientAuthority?: string;
}

/** Files that fit together. */
export interface LoadedCertificate {
  readonly context: SecureContextOptions;
  /** When the server's certificate ends, in milliseconds since the epoch. */
  readonly notAfter: number;
}

export interface FoundCertificate {
  /** Equal for equal files, also for those that cannot be read. */
  readonly text: string;
  /** Throws an error that names the file when one cannot be read, is not what it should be, or does not fit the others. */
  readonly load: () => LoadedCertificate;
}

/** Looks at a server's certificate as it lies in files, without judging it yet. */
export async function findCertificate(paths: CertificatePaths): Promise<FoundCertificate> {
  const { certificate, key, clientAuthority } = paths;
  try {
    const cert = await readFile(certificate);
    const pair = { cert, key: await readFile(key) };
    if (clientAuthority === undefined) return found(paths, pair);
    return found(paths, { ...pair, ca: await readFile(clientAuthority) });
  } catch (cause) {
    const load = (): never => {
      throw cause;
    };
    return { text: String(cause), load };
  }
}

interface Pems {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca?: Buffer;
}

function found(paths: CertificatePaths, pems: Pems): FoundCertificate {
  const { cert, key, ca } = pems;
  return {
    text: [cert, key, ca ?? ""].map(digest).join(" "),
    load() {
      const [own] = certificatesIn(paths.certificate, cert);
      // OpenSSL would take a file without any authority, and then refuse every client.
      if (ca) certificatesIn(paths.clientAuthority, ca);
      const context = { ...pems, minVersion: "TLSv1.2" } as const;
      try {
        createSecureContext(context);
        // OpenSSL compares only what is of one kind, and would then have nothing to prove itself with.
        if (!own.checkPrivateKey(createPrivateKey(key)))
          throw new Error("the key is that of another certificate");
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new Error(`${paths.key} with ${paths.certificate}: ${reason}`, { cause });
      }
      return { context, notAfter: own.validToDate.getTime() };
    },
  };
}

const pemCertificate = /-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gsu;

function certificatesIn(
  file: string | undefined,
  pem: Buffer,
): [X509Certificate, ...X509Certificate[]] {
  const texts = pem.toString("latin1").match(pemCertificate) ?? [];
  try {
    const [first, ...others] = texts.map((text) => new X509Certificate(text));
    if (first) return [first, ...others];
  } catch (cause) {
    throw new Error(`${file} holds a certificate that cannot be read`, { cause });
  }
  throw new Error(`${file} holds no certificate in PEM`);
}

/** What is kept to compare must not be the key. */
function digest(bytes: Buffer | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}
