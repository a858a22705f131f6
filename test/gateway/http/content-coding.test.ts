import { describe, expect, it } from "vitest";
import { responseCoding } from "../../../gateway/http/content-coding.ts";

describe("responseCoding", () => {
  it.each([
    [undefined, "identity"],
    ["", "identity"],
    ["gzip", "gzip"],
    ["GZIP", "gzip"],
    ["gzip, deflate", "gzip"],
    ["deflate, gzip", "deflate"],
    ["gzip;q=0.5, deflate;q=0.9", "deflate"],
    ["gzip; q=0.3", "gzip"],
    ["gzip;q=0", "identity"],
    ["identity, gzip", "identity"],
    ["gzip;q=1.0,identity;q=1.0", "gzip"],
    ["br, *", "identity"],
    ["gzip;q=abc", "identity"],
  ])("answers '%s' with %s", (accepted, coding) => {
    expect(responseCoding(accepted)).toBe(coding);
  });
});
