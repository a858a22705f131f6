import { describe, expect, it } from "vitest";
import { parseLimitsFile, readLimitsFile } from "../../cli/limits-file.ts";

const whole = `
each-key:
  requests-per-second: 100
each-tenant:
  in-flight: 64
  daily-items: 1000000
tenants:
  - name: blue
    items-per-second: 500
  - name: green team
    in-flight: 1000
`;

describe("parseLimitsFile", () => {
  it("reads the limits of keys, of tenants, and of single tenants", () => {
    expect(parseLimitsFile(whole, "limits.yaml")).toEqual({
      eachKey: { requestsPerSecond: 100 },
      eachTenant: { inFlight: 64, dailyItems: 1_000_000 },
      tenants: new Map([
        ["blue", { itemsPerSecond: 500 }],
        ["green team", { inFlight: 1000 }],
      ]),
    });
  });

  it("takes a file with a part of it", () => {
    const rules = parseLimitsFile("each-key: { in-flight: 2 }", "limits.yaml");
    expect(rules).toEqual({ eachKey: { inFlight: 2 }, eachTenant: {}, tenants: new Map() });
  });

  it.each([
    [
      "each-key:\n  inflight: 2",
      "limits.yaml:2:3: each-key.inflight: unknown key; did you mean in-flight?",
    ],
    [
      "each-key:\n  in-flight: 0",
      "limits.yaml:2: each-key.in-flight: given 0, expected a whole number from 1 to",
    ],
    ["each-key:\n  in-flight: lots", 'limits.yaml:2: each-key.in-flight: given "lots"'],
    [
      "each-key: 5",
      "limits.yaml:1: each-key: given 5, expected a mapping with requests-per-second",
    ],
    [
      "tenants:\n  - in-flight: 3",
      "limits.yaml:2: tenants[0].name: given nothing, expected a tenant's name",
    ],
    [
      "tenants:\n  - name: a\n  - name: a",
      'limits.yaml:3: tenants[1].name: given "a", expected another name',
    ],
    [
      "tenants: {}",
      "limits.yaml:1: tenants: given a mapping, expected a list of 1 to 10000 tenants",
    ],
    ["keys: []", "limits.yaml:1:1: keys: unknown key"],
    ["", "limits.yaml:1: given nothing, expected a mapping with each-key, each-tenant, tenants"],
  ])("says of %j what is wrong, and where", (text, problem) => {
    expect(() => parseLimitsFile(text, "limits.yaml")).toThrow(problem);
  });
});

describe("readLimitsFile", () => {
  it("says of a file that is not there that it cannot be read", async () => {
    await expect(readLimitsFile("/no/such.yaml")).rejects.toThrow(
      "/no/such.yaml: given no file that can be read, expected one with limits",
    );
  });
});
