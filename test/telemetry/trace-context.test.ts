import { describe, expect, it } from "vitest";
import { readTraceparent, writeTraceparent } from "../../telemetry/trace-context.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const spanId = "b7ad6b7169203331";

describe("readTraceparent", () => {
  it("reads what it writes", () => {
    for (const sampled of [true, false]) {
      const context = { traceId, spanId, sampled };
      expect(readTraceparent(writeTraceparent(context))).toEqual(context);
    }
  });

  it("reads what later versions add as if it were not there", () => {
    expect(readTraceparent(`01-${traceId}-${spanId}-03-more`)).toEqual({
      traceId,
      spanId,
      sampled: true,
    });
  });

  it.each([
    undefined,
    "",
    `ff-${traceId}-${spanId}-01`,
    `00-${"0".repeat(32)}-${spanId}-01`,
    `00-${traceId}-${"0".repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${traceId}-${spanId}`,
    `00-${traceId}-${spanId}-0101`,
    `${traceId}-${spanId}-01`,
  ])("takes %s for no place in a trace", (text) => {
    expect(readTraceparent(text)).toBeUndefined();
  });
});
