import { describe, expect, it } from "vitest";
import { isDiskError, isTransient, s3Failure, s3ObjectFailure } from "../../repository/s3-error.ts";

function answered(httpStatusCode: number, name = "Error"): Error {
  return Object.assign(new Error("secret host"), { name, $metadata: { httpStatusCode } });
}

describe("isTransient", () => {
  it("tells what may pass from what will not", () => {
    const passing = [
      answered(500),
      answered(503, "SlowDown"),
      answered(429),
      answered(403, "RequestTimeTooSkewed"),
      Object.assign(new Error(), { code: "ECONNRESET" }),
    ];
    expect(passing.map(isTransient)).toEqual(passing.map(() => true));
    const staying = [answered(403, "AccessDenied"), answered(412), new Error("any"), "text"];
    expect(staying.map(isTransient)).toEqual(staying.map(() => false));
  });
});

describe("isDiskError", () => {
  it("tells a full disk from a broken connection", () => {
    expect(isDiskError(Object.assign(new Error(), { code: "ENOSPC" }))).toBe(true);
    expect(isDiskError(Object.assign(new Error(), { code: "ECONNRESET" }))).toBe(false);
  });
});

describe("s3Failure", () => {
  it("says what is wrong in words that give nothing away", () => {
    const texts = [
      answered(403, "AccessDenied"),
      answered(418),
      Object.assign(new Error("no"), { name: "CredentialsProviderError" }),
      new Error("Region is missing"),
      Object.assign(new Error("no"), { name: "/a/path", code: "x y" }),
    ].map((error) => s3Failure("model 'a'", error).message);
    expect(texts).toEqual([
      "model 'a': cannot be read from S3 (AccessDenied)",
      "model 'a': cannot be read from S3 (HTTP 418)",
      "model 'a': cannot be read from S3 (no credentials found)",
      "model 'a': cannot be read from S3 (no region found; --s3-region names one)",
      "model 'a': cannot be read from S3 (unknown error)",
    ]);
  });
});

describe("s3ObjectFailure", () => {
  it.each([404, 412, 416])("takes %i for a change since the listing", (status) => {
    const { code, message } = s3ObjectFailure("model 'a'", answered(status));
    expect(code).toBe("UNAVAILABLE");
    expect(message).toContain("changed in S3 while it was fetched");
  });
});
