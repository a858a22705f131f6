import { describe, expect, it } from "vitest";
import {
  type AllowedTarget,
  parseAllowedTarget,
} from "../../../gateway/webhooks/allowed-target.ts";
import {
  mayConnect,
  readTarget,
  type TargetPolicy,
} from "../../../gateway/webhooks/target-policy.ts";

const strict: TargetPolicy = { allowHttp: false, ports: [], allowed: [] };
const lax: TargetPolicy = { ...strict, allowHttp: true };

function allowing(...texts: readonly string[]): TargetPolicy {
  const allowed = texts.map((text): AllowedTarget => {
    const target = parseAllowedTarget(text);
    if (!target) throw new Error(`not understood: ${text}`);
    return target;
  });
  return { ...lax, allowed };
}

describe("readTarget", () => {
  it("takes https at its port, and http only where it is allowed", () => {
    expect(readTarget(strict, "https://hooks.example/a?b=c").pathname).toBe("/a");
    expect(() => readTarget(strict, "http://hooks.example/")).toThrow("expected a URL of https");
    expect(readTarget(lax, "http://hooks.example/").port).toBe("");
  });

  it.each(["https://h.example:8443/", "https://h.example:0/", "https://h.example:80/"])(
    "refuses another port: %s",
    (url) => {
      expect(() => readTarget(strict, url)).toThrow(/given port (?:8443|0|80), expected 443/u);
    },
  );

  it("takes the ports that are said, and no others", () => {
    const policy = { ...strict, ports: [8443] };
    expect(readTarget(policy, "https://h.example:8443/").port).toBe("8443");
    expect(() => readTarget(policy, "https://h.example/")).toThrow("given port 443");
  });

  it.each([
    "",
    "hooks.example",
    "//hooks.example/",
    "ftp://hooks.example/",
    "file:///etc/passwd",
    "https://a:b@hooks.example/",
    "https://key@hooks.example/",
    "https://a.example/, https://b.example/",
    `https://hooks.example/${"a".repeat(2048)}`,
  ])("refuses what is no such URL: %s", (url) => {
    expect(() => readTarget(strict, url)).toThrow("Webhook-URL: ");
  });

  it.each([
    "127.0.0.1",
    "2130706433",
    "017700000001",
    "0x7f000001",
    "0x7f.1",
    "127.1",
    "0177.0.0.1",
    "0",
    "0.0.0.0",
    "①②⑦.0.0.1",
    "127.0.0.1.",
    "10.1.2.3",
    "169.254.169.254",
    "2852039166",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[fe80::1]",
    "[fd00:ec2::254]",
  ])("refuses an address that is not public, however it is written: %s", (host) => {
    expect(() => readTarget(strict, `https://${host}/`)).toThrow("webhooks may not go to");
  });

  it("takes addresses that are allowed, also as IPv6", () => {
    const policy = allowing("10.1.0.0/16", "::1", "::ffff:10.5.5.5");
    for (const host of ["10.1.2.3", "10.5.5.5", "167838211", "[::ffff:10.1.2.3]", "[::1]"]) {
      expect(readTarget(policy, `http://${host}/`).protocol).toBe("http:");
    }
    expect(() => readTarget(policy, "http://10.2.0.1/")).toThrow("may not go");
    expect(() => readTarget(policy, "http://[::2]/")).toThrow("may not go");
  });
});

describe("mayConnect", () => {
  it("believes a name that is allowed, whatever it stands for", () => {
    const policy = allowing("*.Hooks.example", "one.example");
    expect(mayConnect(policy, "a.hooks.example", "10.0.0.1")).toBe(true);
    expect(mayConnect(policy, "ONE.example.", "127.0.0.1")).toBe(true);
    for (const name of ["hooks.example", "a.hooks.example.org", "two.example", "xone.example"]) {
      expect(mayConnect(policy, name, "10.0.0.1")).toBe(false);
      expect(mayConnect(policy, name, "1.1.1.1")).toBe(true);
    }
  });

  it("takes nothing that is no address", () => {
    expect(mayConnect(allowing("one.example"), "one.example", "another.example")).toBe(false);
  });
});

describe("parseAllowedTarget", () => {
  it.each([
    "",
    "10.0.0.0/33",
    "10/8",
    "10.0.0.0/8/8",
    "fd00::/129",
    "https://a.example",
    "a b",
    "10.0.0",
    "1.2.3.*",
    "[::1]",
    "a..b",
  ])("refuses %s", (text) => {
    expect(parseAllowedTarget(text)).toBeUndefined();
  });
});
