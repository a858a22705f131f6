import { createHmac, createPublicKey, type JsonWebKey } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { remoteTokenKeys, staticTokenKeys } from "../../auth/token-keys.ts";
import { TokenVerifier, type TokenVerifierOptions } from "../../auth/token-verifier.ts";
import { eventually } from "../helpers/eventually.ts";
import {
  audienceName,
  issuerName,
  startIssuer,
  type TokenIssuer,
} from "../helpers/token-issuer.ts";

let issuer: TokenIssuer;
beforeEach(async () => {
  issuer = await startIssuer();
});
afterEach(() => issuer.close());

function verifier(more: Partial<TokenVerifierOptions> = {}): TokenVerifier {
  return new TokenVerifier({
    keys: remoteTokenKeys(issuer.url),
    issuer: issuerName,
    audience: audienceName,
    algorithms: ["ES256", "RS256"],
    clockToleranceSeconds: 5,
    claims: { tenant: "tenant", scope: "scope", models: "models" },
    ...more,
  });
}

/** A token whose parts are what a test says. */
function forged(head: object, claims: object, signature = ""): string {
  const [one, two] = [head, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString("base64url"),
  );
  return `${one}.${two}.${signature}`;
}

function seconds(): number {
  return Math.floor(Date.now() / 1000);
}

const goodClaims = { iss: issuerName, aud: audienceName, sub: "mallory", exp: 9_999_999_999 };
const unsigned = "token: it is not one that the issuer signed with an algorithm that is taken";

describe("TokenVerifier", () => {
  it("gives the caller that a token describes", async () => {
    const token = await issuer.sign({ tenant: "blue", scope: ["read", "other"], models: "a* b" });
    expect(await verifier().verify(token)).toEqual({
      name: "token:alice",
      title: "alice",
      tenant: "blue",
      scopes: new Set(["read"]),
      models: [
        { text: "a*", pieces: ["a", ""] },
        { text: "b", pieces: ["b"] },
      ],
    });
  });

  it("takes claims by the names that it was told", async () => {
    const claims = { tenant: "org", scope: "https://tidepool.example/may", models: "m" };
    const token = await issuer.sign({ org: "red", "https://tidepool.example/may": "admin" });
    expect(await verifier({ claims }).verify(token)).toMatchObject({
      tenant: "red",
      scopes: new Set(["admin"]),
      models: [{ text: "*" }],
    });
  });

  it("lets a token without claims of its own do nothing, in the tenant 'default'", async () => {
    const token = await issuer.sign({ scope: undefined });
    expect(await verifier().verify(token)).toMatchObject({ tenant: "default", scopes: new Set() });
  });

  it.each([
    ["that has expired", { exp: seconds() - 60 }, "token: it has expired"],
    ["of another issuer", { iss: "https://other.example" }, "token: its claim 'iss' is not"],
    ["for another audience", { aud: "else" }, "token: its claim 'aud' is not the expected one"],
    ["that is not valid yet", { nbf: seconds() + 600 }, "token: its claim 'nbf' is not"],
    ["without an end", { exp: undefined }, "token: its claim 'exp' is not the expected one"],
    ["of nobody", { sub: undefined }, "token: its claim 'sub' is not the expected one"],
    ["of an empty name", { sub: "" }, "token: its claim 'sub' cannot be used"],
    ["with a huge name", { sub: "a".repeat(257) }, "token: its claim 'sub' cannot be used"],
    ["with a tenant that is no text", { tenant: 7 }, "token: its claim 'tenant' cannot be used"],
    ["with a tenant no key could have", { tenant: "a b" }, "token: its claim 'tenant' cannot"],
    ["with a long tenant", { tenant: "a".repeat(65) }, "token: its claim 'tenant' cannot be used"],
    ["with an empty tenant", { tenant: "" }, "token: its claim 'tenant' cannot be used"],
    ["with scopes that are no list", { scope: {} }, "token: its claim 'scope' cannot be used"],
    ["with models that are no texts", { models: [1] }, "token: its claim 'models' cannot be used"],
    ["with too many models", { models: "a ".repeat(101) }, "its claim 'models' cannot be used"],
  ])("refuses one %s", async (_, claims, message) => {
    const tokens = verifier();
    const token = await issuer.sign(claims);
    await expect(tokens.verify(token)).rejects.toMatchObject({
      code: "UNAUTHENTICATED",
      message: expect.stringContaining(message),
    });
    expect(tokens.known(token)).toBeUndefined();
  });

  it("takes one for an audience among others, and within the clock's tolerance", async () => {
    const claims = { aud: ["else", audienceName], exp: seconds() - 2, nbf: seconds() + 2 };
    expect(await verifier().verify(await issuer.sign(claims))).toMatchObject({ title: "alice" });
  });

  it("refuses one without a signature, however it spells that", async () => {
    for (const alg of ["none", "None", "NONE", "", undefined]) {
      const token = forged({ alg }, goodClaims);
      await expect(verifier().verify(token)).rejects.toThrow(unsigned);
    }
  });

  it("refuses one that is signed with the public key as if it were a secret", async () => {
    const [shown] = issuer.keySet().keys;
    const pem = createPublicKey({ key: shown as JsonWebKey, format: "jwk" }) // oxlint-disable-line typescript/no-unsafe-type-assertion -- two libraries' names of one thing
      .export({ type: "spki", format: "pem" });
    const body = forged({ alg: "HS256", kid: shown?.kid }, goodClaims).slice(0, -1);
    for (const secret of [String(pem), String(pem).trim(), JSON.stringify(shown)]) {
      const signature = createHmac("sha256", secret).update(body).digest("base64url");
      for (const keys of [remoteTokenKeys(issuer.url), staticTokenKeys(String(pem))])
        await expect(verifier({ keys }).verify(`${body}.${signature}`)).rejects.toThrow(unsigned);
    }
  });

  it("refuses one of an algorithm that is not among those that are taken", async () => {
    const token = await issuer.sign();
    await expect(verifier({ algorithms: ["RS256"] }).verify(token)).rejects.toThrow(unsigned);
  });

  it("refuses one that somebody else signed, was changed, or brings its own key", async () => {
    const other = await startIssuer();
    const [shown] = other.keySet().keys;
    const head = { jwk: shown, jku: other.url.href };
    const tokens = [
      await other.sign(),
      await other.sign({}, head),
      await other.sign({}, { kid: "9" }),
    ];
    const [first, , last] = (await issuer.sign()).split(".");
    tokens.push(
      `${first}.${Buffer.from(JSON.stringify(goodClaims)).toString("base64url")}.${last}`,
    );
    for (const token of tokens) await expect(verifier().verify(token)).rejects.toThrow(unsigned);
    expect(other.fetches).toBe(0);
    other.close();
  });

  it.each(["", ".", "..", "a.b.c", "e30.e30.", "{}", "a".repeat(8192)])(
    "refuses %j",
    async (token) => {
      await expect(verifier().verify(token)).rejects.toThrow(unsigned);
    },
  );

  it("remembers one that was good, until it expires", async () => {
    let now = Date.now();
    const tokens = verifier({ now: () => now });
    const token = await issuer.sign({ exp: Math.floor(now / 1000) + 30 });
    expect(tokens.known(token)).toBeUndefined();
    const caller = await tokens.verify(token);
    expect(tokens.known(token)).toBe(caller);
    now += 34_000;
    expect(tokens.known(token)).toBe(caller);
    now += 1000;
    expect(tokens.known(token)).toBeUndefined();
    await expect(tokens.verify(token)).rejects.toThrow("it has expired");
  });

  it("looks at the signature again after a minute", async () => {
    let now = Date.now();
    const tokens = verifier({ now: () => now });
    const token = await issuer.sign();
    await tokens.verify(token);
    now += 60_000;
    expect(tokens.known(token)).toBeUndefined();
    expect(await tokens.verify(token)).toMatchObject({ title: "alice" });
  });

  it("remembers a bounded number of tokens, and the newest of them", async () => {
    const tokens = verifier({ keys: staticTokenKeys(JSON.stringify(issuer.keySet())) });
    const first = await issuer.sign();
    await tokens.verify(first);
    let last = first;
    for (let i = 0; i < 10_000; i++) {
      last = await issuer.sign({ sub: String(i) });
      await tokens.verify(last);
    }
    expect(tokens.size).toBe(10_000);
    expect(tokens.known(first)).toBeUndefined();
    expect(tokens.known(last)).toBeDefined();
  }, 60_000);
});

describe("remoteTokenKeys", () => {
  it("fetches the keys once for many tokens at once", async () => {
    const tokens = verifier();
    const texts = await Promise.all(Array.from({ length: 20 }, () => issuer.sign()));
    await Promise.all(texts.map((token) => tokens.verify(token)));
    expect(issuer.fetches).toBe(1);
  });

  it("finds the keys that an issuer has rotated to, and keeps those that are still shown", async () => {
    const tokens = verifier();
    const old = await issuer.sign();
    await tokens.verify(old);
    await issuer.rotate(true);
    const young = await issuer.sign();
    await eventually(async () => {
      expect(await tokens.verify(young)).toMatchObject({ title: "alice" });
    });
    expect(await tokens.verify(old)).toMatchObject({ title: "alice" });
    await issuer.rotate(false);
    const youngest = await issuer.sign();
    await eventually(async () => {
      expect(await tokens.verify(youngest)).toMatchObject({ title: "alice" });
    });
    await expect(tokens.verify(old)).rejects.toThrow(unsigned);
  });

  it("does not fetch the keys again for each token that names an unknown one", async () => {
    const tokens = verifier();
    await tokens.verify(await issuer.sign());
    const began = performance.now();
    for (let i = 0; i < 200; i++) {
      const token = await issuer.sign({}, { kid: `made up ${i}` });
      await expect(tokens.verify(token)).rejects.toThrow(unsigned);
    }
    const passed = Math.ceil((performance.now() - began) / 1000);
    expect(issuer.fetches).toBeLessThanOrEqual(1 + passed);
  });

  it("says that it cannot tell while the issuer is away or answers nonsense, and recovers", async () => {
    const tokens = verifier();
    const token = await issuer.sign();
    issuer.failure = 500;
    const away = { code: "UNAVAILABLE", message: expect.stringContaining("cannot be had") };
    await expect(tokens.verify(token)).rejects.toMatchObject(away);
    const nowhere = verifier({ keys: remoteTokenKeys(new URL("http://127.0.0.1:1/")) });
    await expect(nowhere.verify(token)).rejects.toMatchObject(away);
    issuer.failure = undefined;
    expect(await tokens.verify(token)).toMatchObject({ title: "alice" });
  });
});

describe("staticTokenKeys", () => {
  it("takes a set of keys, and one public key", async () => {
    const token = await issuer.sign();
    const [shown] = issuer.keySet().keys;
    const pem = createPublicKey({ key: shown as JsonWebKey, format: "jwk" }) // oxlint-disable-line typescript/no-unsafe-type-assertion -- two libraries' names of one thing
      .export({ type: "spki", format: "pem" });
    for (const text of [JSON.stringify(issuer.keySet()), String(pem)]) {
      const tokens = verifier({ keys: staticTokenKeys(text) });
      expect(await tokens.verify(token)).toMatchObject({ title: "alice" });
    }
    expect(issuer.fetches).toBe(0);
  });

  it("refuses a token of an algorithm that the key is not for", async () => {
    const rsa = await startIssuer("RS256");
    const keys = staticTokenKeys(JSON.stringify(issuer.keySet()));
    await expect(verifier({ keys }).verify(await rsa.sign())).rejects.toThrow(unsigned);
    rsa.close();
  });

  it.each([
    "",
    "secret",
    "{",
    '{"keys":1}',
    "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----",
  ])("refuses %j", (text) => {
    expect(() => staticTokenKeys(text)).toThrow("expected a public key in PEM");
  });

  it("refuses a set without a key that a token could be verified with", () => {
    const [shown] = issuer.keySet().keys;
    const secret = { kty: "oct", k: "c2VjcmV0", alg: "HS256" };
    const useless = [
      secret,
      { ...shown, use: "enc" },
      { ...shown, d: shown?.x },
      { kty: "EC", crv: "P-256" },
    ];
    for (const keys of [[], [secret], useless])
      expect(() => staticTokenKeys(JSON.stringify({ keys }))).toThrow("has no public key");
    expect(() => staticTokenKeys(JSON.stringify({ keys: [secret, shown] }))).not.toThrow();
  });
});
