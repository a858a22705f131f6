import { describe, expect, it } from "vitest";
import { isS3Location, parseS3Location } from "../../repository/s3-location.ts";

describe("parseS3Location", () => {
  it.each([
    ["s3://bucket", { bucket: "bucket", prefix: "" }],
    ["s3://bucket/", { bucket: "bucket", prefix: "" }],
    ["s3://bucket/path/to/models", { bucket: "bucket", prefix: "path/to/models/" }],
    ["s3://bucket/path//", { bucket: "bucket", prefix: "path/" }],
    ["s3://b.u-c.ket/.models", { bucket: "b.u-c.ket", prefix: ".models/" }],
    [
      "s3://localhost:9000/bucket/path",
      { endpoint: "http://localhost:9000", bucket: "bucket", prefix: "path/" },
    ],
    [
      "s3://http://10.0.0.1:9000/bucket",
      { endpoint: "http://10.0.0.1:9000", bucket: "bucket", prefix: "" },
    ],
    [
      "s3://https://host.example.com:443/bucket/a/b",
      { endpoint: "https://host.example.com:443", bucket: "bucket", prefix: "a/b/" },
    ],
    [
      "s3://https://host.example.com/bucket/a",
      { endpoint: "https://host.example.com", bucket: "bucket", prefix: "a/" },
    ],
  ])("reads %s", (text, location) => {
    expect(isS3Location(text)).toBe(true);
    expect(parseS3Location(text)).toEqual(location);
  });

  it.each([
    "s3://",
    "s3://b",
    "s3:///path",
    "s3://localhost:9000",
    "s3://localhost:99999/bucket",
    "s3://user:secret@host:9000/bucket",
    "s3://ftp://host:9000/bucket",
    "s3://bucket/a//b",
    "s3://bucket/../other",
    "s3://bucket/a/.",
    "s3://bucket/a\\b",
    "s3://bucket/a\nb",
  ])("refuses %j", (text) => {
    expect(parseS3Location(text)).toBeUndefined();
  });

  it("takes a folder for what it is", () => {
    expect(isS3Location("/models/s3://x")).toBe(false);
  });
});
