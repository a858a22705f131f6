import { setImmediate } from "node:timers/promises";
import { authenticator, type Credentials } from "../auth/authenticator.ts";
import { createKey } from "../auth/key-changes.ts";
import { KeyRing } from "../auth/key-ring.ts";
import { staticTokenKeys } from "../auth/token-keys.ts";
import { TokenVerifier } from "../auth/token-verifier.ts";
import { CallerLimits } from "../auth/limits/caller-limits.ts";
import type { Limits } from "../auth/limits/limits.ts";
import { memoryPoints, redisPoints } from "../auth/limits/points.ts";
import { RedisPermits } from "../auth/limits/redis-permits.ts";
import { type Access, admit } from "../gateway/access.ts";
import { Admission } from "../gateway/admission.ts";
import { Refusals } from "../gateway/refusals.ts";
import { anonymous, Call } from "../protocol/call.ts";
import { connect } from "../redis/connection.ts";
import { anyPurpose } from "../test/auth/key-store-cases.ts";
import { MemoryKeyStore } from "../test/auth/memory-key-store.ts";
import { startRedis } from "../test/helpers/redis-server.ts";
import { SilentLog } from "../test/helpers/silent-log.ts";
import { audienceName, issuerName, startIssuer } from "../test/helpers/token-issuer.ts";

/** In less time than keys count without another look at them. */
const calls = 10_000;

const gateways = (): number => 1;

/** Limits that no round reaches, so that each call passes all of them. */
const wide: Limits = {
  requestsPerSecond: 10_000_000,
  itemsPerSecond: 100_000_000,
  inFlight: 1000,
  dailyItems: 100_000_000_000,
};

/** What it costs to find out who calls, and whether and how much they may: microseconds a call, the best of twenty rounds. */
async function bench(): Promise<void> {
  const store = new MemoryKeyStore();
  for (let i = 0; i < 1000; i++) await createKey(store, anyPurpose, 0);
  const models = Array.from({ length: 10 }, (_, at) => `team-${at}-*`);
  const purpose = { ...anyPurpose, models: [...models, "mlp"] };
  const { key } = await createKey(store, purpose, 0);
  const { key: limited } = await createKey(store, { ...purpose, limits: wide }, 0);
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
  const open = { authorization: undefined, apiKey: key.text };
  const bounded = { authorization: undefined, apiKey: limited.text };
  await reportLimits("key without limits, let in", admissionOf({}), access, open);
  const own = limitParts({ points: memoryPoints() });
  await reportLimits("key with all limits, its tenant, too", admissionOf(own), access, bounded);
  const redis = await startRedis();
  const commands = await connect(redis.url, "commands");
  const subscriber = await connect(redis.url, "subscriber");
  const permits = new RedisPermits({ commands, subscriber, gateway: "bench", gateways });
  const shared = limitParts({ points: redisPoints(commands, gateways), permits });
  await reportLimits("the same, held in Redis", admissionOf(shared), access, bounded);
  permits.close();
  for (const connection of [commands, subscriber]) connection.disconnect();
  await redis.stop();
  keys.close();
  issuer.close();
}

function limitParts(
  parts: Pick<ConstructorParameters<typeof CallerLimits>[0], "points" | "permits">,
) {
  const limits = new CallerLimits({
    ...parts,
    rules: { eachKey: {}, eachTenant: wide, tenants: new Map() },
    now: () => performance.now(),
    today: Date.now,
    onRefused: () => {},
  });
  return { limits };
}

function admissionOf(more: { readonly limits?: CallerLimits }): Admission {
  const most = { maxRequests: 100_000, maxModelRequests: 100_000, maxBytes: 2 ** 40 };
  return new Admission({ ...most, refusals: new Refusals(), ...more });
}

/** All of it: who calls, whether they may, a permit, its items, the headers, and the permit back. */
async function reportLimits(
  name: string,
  admission: Admission,
  access: Access,
  given: Credentials,
): Promise<void> {
  const rounds: number[] = [];
  const headers = new Set<string>();
  for (let round = 0; round < 20; round++) {
    await setImmediate();
    const began = process.cpuUsage();
    for (let i = 0; i < calls; i++) {
      const caller = await admit(access, given, { need: "infer", model: "mlp" });
      const call = new Call(anonymous, performance.now());
      const entered = admission.enter({ caller, call, model: "mlp", bytes: 256 });
      const permit = entered instanceof Promise ? await entered : entered;
      const charged = permit.charge(4);
      if (charged) await charged;
      headers.add(permit.quota?.policy ?? "none");
      permit.quota?.left.endsWith("");
      permit.release();
    }
    const { user, system } = process.cpuUsage(began);
    rounds.push((user + system) / calls);
  }
  if (headers.size !== 1) throw new Error("every call is limited alike");
  process.stdout.write(`${name}: ${Math.min(...rounds).toFixed(2)} µs\n`);
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
