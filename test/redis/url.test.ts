import { array, assert, constantFrom, property, string } from "fast-check";
import { describe, expect, it } from "vitest";
import { parseRedisUrl } from "../../redis/url.ts";

const one = { cluster: false, tls: false, database: 0 };

describe("parseRedisUrl", () => {
  it.each([
    ["redis://redis", { ...one, nodes: [{ host: "redis", port: 6379 }] }],
    ["redis://redis:1234/", { ...one, nodes: [{ host: "redis", port: 1234 }] }],
    ["redis://redis/3", { ...one, nodes: [{ host: "redis", port: 6379 }], database: 3 }],
    ["rediss://[::1]:1", { ...one, tls: true, nodes: [{ host: "::1", port: 1 }] }],
    ["redis://:s%40crp@h", { ...one, nodes: [{ host: "h", port: 6379 }], password: "s@crp" }],
    [
      "redis://me:100%@/x@h:1/2",
      {
        ...one,
        nodes: [{ host: "h", port: 1 }],
        username: "me",
        password: "100%@/x",
        database: 2,
      },
    ],
    [
      "rediss-cluster://:x@a:1,b",
      {
        cluster: true,
        tls: true,
        nodes: [
          { host: "a", port: 1 },
          { host: "b", port: 6379 },
        ],
        password: "x",
        database: 0,
      },
    ],
  ])("reads %s", (url, address) => {
    expect(parseRedisUrl(url)).toEqual(address);
  });

  it.each([
    ["localhost:6379", "localhost:6379"],
    ["http://localhost", "http://localhost"],
    ["redis://", "redis://"],
    ["redis://localhost:0", "redis://localhost:0"],
    ["redis://localhost:65536", "redis://localhost:65536"],
    ["redis://a:1,b:1", "redis://a:1,b:1"],
    ["redis-cluster://a,b/1", "redis-cluster://a,b/1"],
    ["redis://localhost/x", "redis://localhost/x"],
    ["redis://localhost/1/2", "redis://localhost/1/2"],
    ["redis://:secret@localhost:none", "redis://…@localhost…"],
    ["redis://localhost?password=secret", "redis://localhost…"],
    ["redis://user:secret", "redis://user…"],
    ["redis://:5ecret", "redis://…"],
  ])("refuses %s and says what is expected", (url, shown) => {
    expect(() => parseRedisUrl(url)).toThrow(
      `Redis URL '${shown}' cannot be used, expected redis://[[user]:password@]host[:port][/database]`,
    );
  });

  it("never shows a password in a refusal", () => {
    const characters = constantFrom("s", "3", ":", "@", "/", "?", "#", "%", ",", " ");
    const password = array(characters, { maxLength: 8 }).map((some) => some.join(""));
    assert(
      property(password, string(), (secret, rest) => {
        const place = rest.replaceAll("@", "");
        expect(refusalOf(`redis://:${secret}@${place}`)).toBe(refusalOf(`redis://:x@${place}`));
      }),
    );
  });
});

function refusalOf(url: string): string {
  try {
    parseRedisUrl(url);
    return "";
  } catch (error) {
    return String(error);
  }
}
