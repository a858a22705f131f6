import { describe, expect, it } from "vitest";
import { parseCacheConfig } from "../../cli/cache-config.ts";
import { UsageError } from "../../cli/usage-error.ts";

const day = 86_400_000;

function messageOf(...texts: readonly string[]): string {
  try {
    parseCacheConfig(texts, {});
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
  return "no error";
}

describe("parseCacheConfig", () => {
  it("asks for no cache when nothing is given", () => {
    expect(parseCacheConfig([], {})).toEqual({});
  });

  it("reads the settings of both tiers, the last of each", () => {
    const texts = [
      "local,size=1024",
      "local,size=4096",
      "local,ttl=60",
      "redis,url=rediss://c:1/2",
    ];
    expect(parseCacheConfig([...texts, "redis,ttl=5"], {})).toEqual({
      memory: { maxBytes: 4096, ttlMilliseconds: 60_000 },
      redis: { url: "rediss://c:1/2", ttlMilliseconds: 5000 },
    });
  });

  it("reads a cluster's URL, in which there are commas", () => {
    const { redis } = parseCacheConfig(["redis,url=redis-cluster://a:1,b:2"], {});
    expect(redis).toEqual({ url: "redis-cluster://a:1,b:2", ttlMilliseconds: day });
  });

  it.each<[readonly string[], NodeJS.ProcessEnv, string]>([
    [["redis,host=h"], {}, "redis://h:6379/0"],
    [
      ["redis,host=h", "redis,port=7", "redis,db=3", "redis,tls_enabled=true"],
      {},
      "rediss://h:7/3",
    ],
    [["redis,host=h", "redis,user=u@", "redis,password=p:/"], {}, "redis://u%40:p%3A%2F@h:6379/0"],
    [["redis,host=h"], { TRITONCACHE_REDIS_PASSWORD: "p" }, "redis://:p@h:6379/0"],
    [
      ["redis,host=h"],
      { TRITONCACHE_REDIS_USERNAME: "u", TRITONCACHE_REDIS_PASSWORD: "p" },
      "redis://u:p@h:6379/0",
    ],
  ])("makes a URL of %j and %j", (texts, environment, url) => {
    expect(parseCacheConfig(texts, environment).redis?.url).toBe(url);
  });

  it.each([
    ["local", "given 'local', expected local,<setting>=<value> or redis,<setting>=<value>"],
    [
      "disk,size=1",
      "given 'disk,size', expected local,<setting>=<value> or redis,<setting>=<value>",
    ],
    ["local,foo=1", "given 'local,foo', expected one of size, ttl"],
    ["local,size=abc", "given 'local,size', expected an integer, 1024 or more"],
    ["local,size=10", "given 'local,size', expected an integer, 1024 or more"],
    ["local,ttl=5", "given 'local,size', expected an integer, 1024 or more"],
    ["redis,port=1", "given 'redis', expected redis,host or redis,url, too"],
    ["redis,host=h:x", "redis,url: Redis URL 'redis://h…' cannot be used, expected "],
  ])("refuses %s", (text, message) => {
    expect(messageOf(text)).toContain(`--cache-config: ${message}`);
  });

  it("tells no password in an error", () => {
    const secret = "hunter2";
    const faults = [
      [`redis,passwort=${secret}`],
      ["redis,port=x", "redis,host=h", `redis,password=${secret}`],
      [`redis,url=redis://u:${secret}@`],
      ["redis,url=redis://h", `redis,password=${secret}`, "redis,ttl=0"],
    ];
    for (const texts of faults) {
      expect(messageOf(...texts)).toMatch(/^--cache-config: /u);
      expect(messageOf(...texts)).not.toContain(secret);
    }
  });
});
