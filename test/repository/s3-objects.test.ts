import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { S3Objects } from "../../repository/s3-objects.ts";
import { type S3Fault, S3Proxy } from "../helpers/s3-proxy.ts";
import { s3Environment, type S3Server, startS3 } from "../helpers/s3-server.ts";

const key = "{tidepool:default}:job-result:j_1";
const patience = { attempts: 4, firstPauseMilliseconds: 5, stallMilliseconds: 500 };

describe("S3Objects", () => {
  let server: S3Server;
  let proxy: S3Proxy;
  beforeAll(async () => {
    Object.assign(process.env, s3Environment);
    server = await startS3();
    proxy = await S3Proxy.start(server.endpoint);
  });
  afterEach(() => {
    proxy.fault = () => undefined;
    proxy.requests.length = 0;
  });
  afterAll(async () => {
    await proxy.stop();
    await server.stop();
  });

  function objects(bucket = server.bucket): S3Objects {
    const { endpoint } = proxy;
    return new S3Objects({ endpoint, bucket, prefix: "jobs/", pathStyle: true, patience });
  }

  /** Happens to the first requests of a kind. */
  function spoil(method: string, fault: S3Fault, times = Infinity): void {
    let left = times;
    proxy.fault = (request) => (request.method === method && left-- > 0 ? fault : undefined);
  }

  const bytes = Buffer.alloc(3_000_000, "a tensor ");

  it("gives back what was put, from one object below its prefix, until it is removed", async () => {
    const one = objects();
    await one.put(key, bytes);
    await one.put(key, bytes);
    expect(proxy.requests.at(-1)?.url).toMatch(
      /^\/models\/jobs\/tidepool\/default\/job-result\/j_1(?:\?|$)/u,
    );
    expect((await objects().get(key))?.equals(bytes)).toBe(true);
    await one.remove(key);
    expect(await one.get(key)).toBeUndefined();
  });

  it("takes a bucket that is missing for a fault, and not for nothing", async () => {
    await expect(objects("elsewhere").get(key)).rejects.toMatchObject({ code: "INTERNAL" });
  });

  it.each([
    { kind: "status", status: 503, code: "SlowDown" },
    { kind: "reset", afterBytes: 1000 },
    { kind: "truncate", afterBytes: 1000 },
    { kind: "stall", afterBytes: 1000 },
    { kind: "corrupt", atByte: 1000 },
  ] as const)("reads it whole where S3 fails at first: $kind", async (fault) => {
    const one = objects();
    await one.put(key, bytes);
    spoil("GET", fault, 2);
    expect((await one.get(key))?.equals(bytes)).toBe(true);
    expect(proxy.requests.filter(({ method }) => method === "GET")).toHaveLength(3);
  });

  it("writes it where S3 fails at first", async () => {
    spoil("PUT", { kind: "status", status: 500, code: "InternalError" }, 2);
    await objects().put(key, bytes);
    expect((await objects().get(key))?.equals(bytes)).toBe(true);
  });

  it("rejects with UNAVAILABLE what S3 does not take, and leaves what it does not remove", async () => {
    const down = { kind: "status", status: 503, code: "SlowDown" } as const;
    spoil("PUT", down);
    await expect(objects().put(key, bytes)).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "large content of a job: cannot be written to S3 (SlowDown)",
    });
    spoil("DELETE", down);
    await objects().remove(key);
    expect(proxy.requests.filter(({ method }) => method === "DELETE")).toHaveLength(1);
  });
});
