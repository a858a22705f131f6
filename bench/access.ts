import { setImmediate } from "node:timers/promises";
import { authenticator, type Credentials } from "../auth/authenticator.ts";
import { createKey } from "../auth/key-changes.ts";
import { KeyRing } from "../auth/key-ring.ts";
import { staticTokenKeys } from "../auth/token-keys.ts";
import { TokenVerifier } from "../auth/token-verifier.ts";
import { type Access, admit } from "../gateway/access.ts";
import { anyPurpose } from "../test/auth/key-store-cases.ts";
import { MemoryKeyStore } from "../test/auth/memory-key-store.ts";
import { SilentLog } from "../test/helpers/silent-log.ts";
import { audienceName, issuerName, startIssuer } from "../test/helpers/token-issuer.ts";

/** In less time than keys count without another look at them. */
const calls = 10_000;

/** What it costs to find out who calls and whether they may: microseconds a call, the best of twenty rounds. */
async function bench(): Promise<void> {
  const store = new MemoryKeyStore();
  for (let i = 0; i < 1000; i++) await createKey(store, anyPurpose, 0);
  const models = Array.from({ length: 10 }, (_, at) => `team-${at}-*`);
  const { key } = await createKey(store, { ...anyPurpose, models: [...models, "mlp"] }, 0);
  const keys = await KeyRing.open({ store, log: new SilentLog() });
  const issuer = await startIssuer();
  const tokens = new TokenVerifier({
    keys: staticTokenKeys(JSON.stringify(issuer.keySet())),
    issuer: issuerName,
    audience: audienceName,
    algorithms: ["ES256"],
    clockToleranceSeconds: 5,
    claims: { tenant: "tenant", scope: "scope", models: "models" },
  });
  const access = { authenticator: authenticator({ keys, tokens }), healthAnonymous: true };
  const token = await issuer.sign();
  await tokens.verify(token);
  await report("key as X-API-Key", access, { authorization: undefined, apiKey: key.text });
  await report("key as a bearer", access, {
    authorization: `Bearer ${key.text}`,
    apiKey: undefined,
  });
  await report("token that is known", access, {
    authorization: `Bearer ${token}`,
    apiKey: undefined,
  });
  keys.close();
  issuer.close();
}

async function report(name: string, access: Access, given: Credentials): Promise<void> {
  const rounds: number[] = [];
  for (let round = 0; round < 20; round++) {
    await setImmediate();
    const began = performance.now();
    for (let i = 0; i < calls; i++) {
      const caller = admit(access, given, { need: "infer", model: "mlp" });
      if (caller instanceof Promise) throw new Error("it must be known at once");
    }
    rounds.push(((performance.now() - began) / calls) * 1000);
  }
  process.stdout.write(`${name}: ${Math.min(...rounds).toFixed(2)} µs\n`);
}

await bench();
