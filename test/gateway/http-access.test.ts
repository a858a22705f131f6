import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { newApiKey } from "../../auth/api-key.ts";
import { scopes } from "../../auth/scope.ts";
import { httpNeeds } from "../../gateway/policy.ts";
import { eventually } from "../helpers/eventually.ts";
import { errorOf } from "../helpers/http-client.ts";
import { rawConnection, rawStatus } from "../helpers/raw-connection.ts";
import { echo } from "../helpers/memory-engine.ts";
import { modelInput, modelOutput, servedModel } from "../helpers/served-model.ts";
import { HttpStand } from "./http/http-stand.ts";
import { type KeyDesk, openKeyDesk } from "./key-desk.ts";

let desk: KeyDesk;
let http: HttpStand;
beforeEach(async () => {
  desk = await openKeyDesk();
  http = await HttpStand.start({ access: desk.access });
});
afterEach(async () => {
  await http.stop();
  desk.close();
});

/** Paths as clients write them, with and without a version. */
const paths = Object.entries(httpNeeds).flatMap(([pattern, need]) => {
  const path = pattern.replace(":model", "batch").replace(":repository", "r").replace(":job", "j");
  const versioned = path.replace("/models/batch", "/models/batch/versions/1");
  const ofModel = pattern.startsWith("/v2/models/:model") && !/\/(?:cache|trace)\//u.test(pattern);
  const whole = path.replace(":region", "region");
  return (ofModel ? [whole, versioned] : [whole]).map((one) => [one, need] as const);
});
const methods = ["GET", "POST", "DELETE"];

const body = { inputs: [{ name: "IN0", datatype: "FP32", shape: [1, 4], data: [1, 2, 3, 4] }] };

/** The statuses of the answers that have come on a connection, without those that ask to go on. */
function statusesIn(received: Buffer): readonly string[] {
  return Array.from(
    String(received).matchAll(/HTTP\/1\.1 ([2-5]\d\d)/gu),
    ([, status = ""]) => status,
  );
}

/** The status of a call; 200, 400, 404, 405 and the like mean that it was let in. */
async function statusOf(path: string, method: string, key?: string): Promise<number> {
  const headers: Record<string, string> = key === undefined ? {} : { "X-API-Key": key };
  return (await http.ask(method, path, Buffer.alloc(0), headers)).status;
}

/** An infer call as it goes over a connection. */
function post(key: string, model = "batch", more = ""): string {
  const json = JSON.stringify(body);
  return (
    `POST /v2/models/${model}/infer HTTP/1.1\r\nHost: x\r\n${more}X-API-Key: ${key}\r\n` +
    `Content-Length: ${json.length}\r\n\r\n${json}`
  );
}

/** Asks on a connection of its own, by each of the ways that a call can be read. */
async function statuses(key: string, model = "batch"): Promise<readonly string[]> {
  const all: string[] = [];
  for (const more of ["", "X-Other: 1\r\n", "Expect: 100-continue\r\n"])
    all.push(String(await rawStatus(http.origin.slice(7), post(key, model, more))));
  return all;
}

describe("policy over HTTP", () => {
  it("asks for a key on every path but health, whatever the method", async () => {
    const wrong = newApiKey().text;
    for (const [path, need] of paths) {
      for (const method of methods) {
        const refused = [await statusOf(path, method), await statusOf(path, method, wrong)];
        const asked = refused.map((one) => one === 401);
        expect([method, path, asked]).toEqual([method, path, asked.map(() => need !== "health")]);
      }
    }
  });

  it.each(scopes)("lets the holder of %s do that and nothing else", async (scope) => {
    const key = await desk.key({ scopes: [scope] });
    for (const [path, need] of paths) {
      for (const method of methods) {
        const status = await statusOf(path, method, key);
        const may = need === scope || need === "health";
        expect([method, path, status === 403]).toEqual([method, path, !may]);
        expect(status).not.toBe(401);
      }
    }
  });

  it("keeps other models from a key, whether they exist or not", async () => {
    const key = await desk.key({ scopes: [...scopes], models: ["pair", "id_*"] });
    const texts = new Set<string>();
    const ofModel = paths.filter(([path]) => path.includes("/batch"));
    expect(ofModel.length).toBeGreaterThan(15);
    for (const [path] of ofModel) {
      for (const model of ["batch", "no-such-model"]) {
        const other = path.replace("batch", model);
        const answer = await http.ask("POST", other, Buffer.alloc(0), { "X-API-Key": key });
        expect([other, answer.status]).toEqual([other, 403]);
        texts.add(errorOf(answer).replace(model, "m"));
      }
      const status = await statusOf(path.replace("batch", "pair"), "POST", key);
      expect([path, status === 403]).toEqual([path, false]);
    }
    expect([...texts].toSorted()).toEqual(
      scopes
        .map((scope) => `model 'm': the caller has scope ${scope} for other models only`)
        .toSorted(),
    );
  });

  it("lists only what a key may use", async () => {
    const key = await desk.key({ models: ["id_fp*"] });
    const index = await http.post("/v2/repository/index", "", { "X-API-Key": key });
    const names = JSON.parse(index.text).map(({ name }: { name: string }) => name);
    expect(names.toSorted()).toEqual(["id_fp16", "id_fp32", "id_fp64"]);
  });

  it("says how to be let in, and what is missing", async () => {
    const nobody = await http.get("/v2");
    expect(nobody.headers["www-authenticate"]).toBe('Bearer realm="tidepool"');
    expect(errorOf(nobody)).toContain("given nothing, expected an API key");
    const reader = await desk.key({ scopes: ["read"] });
    const refused = await http.infer("batch", body, { "X-API-Key": reader });
    expect(errorOf(refused)).toBe("scope: the caller has read, expected infer");
    expect(refused.headers["www-authenticate"]).toBeUndefined();
  });

  it("does not take a key from the address", async () => {
    const key = await desk.key();
    for (const name of ["key", "api_key", "x-api-key", "access_token", "token", "authorization"])
      expect((await http.get(`/v2?${name}=${key}`)).status).toBe(401);
  });

  it("asks for a key about health, too, where that is wanted, and for no scope", async () => {
    const strict = await openKeyDesk(false);
    const stand = await HttpStand.start({ access: strict.access });
    const key = await strict.key({ scopes: ["models"] });
    expect((await stand.get("/v2/health/ready")).status).toBe(401);
    const answer = await stand.ask("GET", "/v2/health/ready", Buffer.alloc(0), {
      "X-API-Key": key,
    });
    expect(answer.status).toBe(200);
    await stand.stop();
    strict.close();
  });

  it("does not answer a closed path in another form", async () => {
    const address = http.origin.slice(7);
    const forms = [
      "/v2//models/batch",
      "//v2/models/batch",
      "/v2/models/batch/",
      "/v2/models/./batch",
      "/v2/health/../models/batch",
      "/v2/health/live/../../models/batch",
      "/v2/models%2Fbatch",
      "/v2/%6dodels/batch",
      "/v2/models/b%61tch",
      "/V2/models/batch",
      "/v2/models/batch?a=/v2/health/live",
      "/v2/models/batch#/v2/health/live",
      "/v2/models/batch;/v2/health/live",
      "/v2/models/stats/../batch",
      "http://x/v2/models/batch",
      "http://x/v2/health/live/../../models/batch",
      "/v2/health/live%00/../../models/batch",
      "\\v2\\models\\batch",
    ];
    for (const form of forms) {
      for (const method of ["GET", "HEAD", "POST", "OPTIONS", "get", "PROPFIND"]) {
        const head = `${method} ${form} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`;
        const { ended } = await rawConnection(address, head);
        const status = /^HTTP\/1\.1 (\d{3})/u.exec(String(await ended))?.[1];
        expect([form, method, ["400", "401", "404"].includes(status ?? "")]).toEqual([
          form,
          method,
          true,
        ]);
      }
    }
  });
});

describe("keyed infer calls", () => {
  it("are answered with a key, and refused without, on every way through the server", async () => {
    const key = await desk.key();
    expect(await statuses(key)).toEqual(["200", "200", "200"]);
    expect(await statuses(newApiKey().text)).toEqual(["401", "401", "401"]);
    expect(await statuses("")).toEqual(["401", "401", "401"]);
    expect(await statuses(await desk.key({ scopes: ["read"] }))).toEqual(["403", "403", "403"]);
    expect(await statuses(await desk.key({ models: ["a*"] }))).toEqual(["403", "403", "403"]);
  });

  it("are refused on a connection that was let in, once the key is revoked", async () => {
    const key = await desk.key();
    const connection = await rawConnection(http.origin.slice(7), post(key));
    const answers = (count: number): Promise<readonly string[]> =>
      eventually(() => {
        const found = statusesIn(connection.received);
        expect(found.length).toBeGreaterThanOrEqual(count);
        return found;
      });
    expect(await answers(1)).toEqual(["200"]);
    connection.socket.write(post(key));
    expect(await answers(2)).toEqual(["200", "200"]);
    await desk.revoke(key);
    connection.socket.write(post(key));
    expect(await answers(3)).toEqual(["200", "200", "401"]);
    connection.socket.destroy();
  });

  it("tell the engine who calls", async () => {
    const key = await desk.key({ tenant: "blue", name: "ci" });
    const callers: unknown[] = [];
    const config = {
      maxBatchSize: 8,
      input: [modelInput("IN0", "TYPE_FP32", [4])],
      output: [modelOutput("OUT0", "TYPE_FP32", [4])],
    };
    http.engine.add(servedModel("told", config), (request, { principal }) => {
      callers.push(principal);
      return [echo(request)];
    });
    await statuses(key, "told");
    const caller = { tenant: "blue", title: "ci", name: `key:${key.slice(3, 15)}` };
    expect(callers).toEqual(Array.from({ length: 3 }, () => expect.objectContaining(caller)));
  });

  it("are told in the log by the key's id and name, and never by its secret", async () => {
    const key = await desk.key({ name: "ci" });
    http.log.update({ logVerboseLevel: 2 });
    await statuses(key);
    await http.ask("GET", "/v2", Buffer.alloc(0), { Authorization: `Bearer ${key}` });
    await http.ask("GET", "/v2", Buffer.alloc(0), { Authorization: `Bearer ${key}x` });
    const told = JSON.stringify(http.log.verboseLines);
    expect(http.log.verboseLines).toContainEqual([
      "call",
      expect.objectContaining({ principal: `key:${key.slice(3, 15)}`, principalTitle: "ci" }),
    ]);
    expect(told).not.toContain(key.slice(-43));
  });

  it("keep their jobs from other keys", async () => {
    const [one, other] = [await desk.key(), await desk.key()];
    const headers = { "X-API-Key": one, Prefer: "respond-async" };
    const accepted = await http.infer("batch", body, headers);
    expect(accepted.status).toBe(202);
    const job = String(accepted.headers.location);
    expect(await statusOf(job, "GET", one)).toBe(200);
    expect(await statusOf(job, "GET", other)).toBe(404);
    expect(await statusOf(`${job}/result`, "GET", other)).toBe(404);
    expect(await statusOf(job, "DELETE", other)).toBe(404);
  });

  it("are answered with 503 while nobody can tell which keys are valid", async () => {
    const key = await desk.key();
    desk.store.isAway = true;
    await expect.poll(() => statuses(key), { timeout: 10_000 }).toEqual(["503", "503", "503"]);
    desk.store.isAway = false;
    expect(await statuses(key)).toEqual(["200", "200", "200"]);
  });
});
