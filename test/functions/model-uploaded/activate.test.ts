import { describe, expect, it } from "vitest";
import { activate } from "../../../functions/model-uploaded/activate.ts";

/** Of a gateway that is away for so many calls. */
function away(calls: number, attempts: number) {
  const pauses: number[] = [];
  let left = calls;
  const options = {
    url: "http://gateway:8000",
    key: undefined,
    headers: {},
    attempts,
    fetch: async () => {
      left -= 1;
      if (left >= 0) throw new TypeError("fetch failed");
      return Response.json({ serving_versions: ["2"] });
    },
    sleep: async (milliseconds: number) => void pauses.push(milliseconds),
  };
  return { options, pauses };
}

describe("activate", () => {
  it("asks again for as long as it may, with pauses that grow up to a minute", async () => {
    const { options, pauses } = away(9, 10);
    expect(await activate("m", options)).toEqual(["2"]);
    expect(pauses).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
  });

  it("gives up after its attempts", async () => {
    const { options, pauses } = away(10, 3);
    await expect(activate("m", options)).rejects.toThrow("the gateway cannot be reached");
    expect(pauses).toEqual([500, 1000]);
  });
});
