import { once } from "node:events";
import { createServer } from "node:http";
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";

/** Who issues tokens in tests: keys that can be changed, at a real URL. */
export interface TokenIssuer {
  readonly url: URL;
  /** How often somebody fetched the keys. */
  readonly fetches: number;
  /** What the next fetch is answered with, instead of the keys. */
  failure: number | undefined;
  /** A token with these claims beside those that a good one has, signed by the newest key. */
  sign(claims?: Readonly<Record<string, unknown>>, head?: object): Promise<string>;
  /** Signs with another key from now on. @param keep the keys before are still shown */
  rotate(keep: boolean): Promise<void>;
  /** What is shown at the URL. */
  keySet(): { readonly keys: readonly JWK[] };
  close(): void;
}

export const issuerName = "https://issuer.example";
export const audienceName = "tidepool";

/** Starts an issuer with one key. */
export async function startIssuer(algorithm = "ES256"): Promise<TokenIssuer> {
  const shown: JWK[] = [];
  let made = 0;
  let privateKey: Awaited<ReturnType<typeof generateKeyPair>>["privateKey"];
  let fetches = 0;
  const rotate = async (keep: boolean): Promise<void> => {
    const pair = await generateKeyPair(algorithm);
    ({ privateKey } = pair);
    if (!keep) shown.length = 0;
    shown.push({ ...(await exportJWK(pair.publicKey)), kid: String(++made), alg: algorithm });
  };
  await rotate(false);
  const server = createServer((_, response) => {
    fetches++;
    response.writeHead(issuer.failure ?? 200, { "content-type": "application/json" });
    response.end(JSON.stringify(issuer.keySet()));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  const issuer: TokenIssuer = {
    url: new URL(`http://127.0.0.1:${port}/jwks`),
    failure: undefined,
    get fetches() {
      return fetches;
    },
    sign(claims = {}, head = {}) {
      const all = {
        iss: issuerName,
        aud: audienceName,
        sub: "alice",
        scope: "infer read",
        exp: Math.floor(Date.now() / 1000) + 3600,
        ...claims,
      };
      return new SignJWT(all)
        .setProtectedHeader({ alg: algorithm, kid: String(made), ...head })
        .sign(privateKey);
    },
    rotate,
    keySet: () => ({ keys: shown }),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
  return issuer;
}
