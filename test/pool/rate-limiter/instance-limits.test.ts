import { describe, expect, it } from "vitest";
import { instanceLimits } from "../../../pool/rate-limiter/instance-limits.ts";
import { cpu } from "../../../pool/devices.ts";

function needsOn(device: number): object[] {
  return [
    { name: "R1", device, count: 4 },
    { name: "R2", device: undefined, count: 1 },
  ];
}

const resource = { name: "R1", global: false, count: 4 };

describe("instanceLimits", () => {
  it("needs resources of the instance's device and of all, the CPU being device 0", () => {
    const rateLimiter = {
      resources: [resource, { name: "R2", global: true, count: 1 }],
      priority: 3,
    };
    const gpu = { kind: "gpu", id: 2, orCpu: false } as const;
    expect(instanceLimits({ device: gpu, rateLimiter })).toEqual({
      needs: needsOn(2),
      priority: 3,
    });
    expect(instanceLimits({ device: cpu, rateLimiter })).toEqual({
      needs: needsOn(0),
      priority: 3,
    });
  });

  it("goes by the last entry of a name", () => {
    const rateLimiter = { resources: [resource, { ...resource, count: 1 }], priority: 0 };
    expect(instanceLimits({ device: cpu, rateLimiter }).needs).toMatchObject([{ count: 1 }]);
  });

  it("needs nothing without a rate limiter", () => {
    expect(instanceLimits({ device: cpu })).toEqual({ needs: [], priority: 0 });
  });
});
