import { describe, expect, it } from "vitest";
import type { S3Object } from "../../repository/s3-bucket.ts";
import { type S3Files, s3Files } from "../../repository/s3-files.ts";

function object(key: string, bytes = 1): S3Object {
  return { key, bytes, etag: '"e"' };
}

function read(...keys: string[]): S3Files {
  return s3Files(
    "p/m/",
    keys.map((key) => object(`p/m/${key}`)),
  );
}

describe("s3Files", () => {
  it("finds the folders that keys stand in", () => {
    const { files, stamps } = read("config.pbtxt", "1/model.onnx", "1/data/w.bin");
    expect(files.map(({ path }) => path)).toEqual(["config.pbtxt", "1/model.onnx", "1/data/w.bin"]);
    expect(stamps).toEqual([
      { path: "1", stamp: "folder", isDirectory: true },
      { path: "1/data", stamp: "folder", isDirectory: true },
      { path: "1/data/w.bin", stamp: '"e":1', isDirectory: false },
      { path: "1/model.onnx", stamp: '"e":1', isDirectory: false },
      { path: "config.pbtxt", stamp: '"e":1', isDirectory: false },
    ]);
  });

  it("takes a key that ends in a slash for a folder", () => {
    const { files, stamps } = s3Files("m/", [object("m/", 0), object("m/2/", 0)]);
    expect(files).toEqual([]);
    expect(stamps).toEqual([{ path: "2", stamp: "folder", isDirectory: true }]);
  });

  it("takes hidden files for files", () => {
    expect(read(".DS_Store", "1/..data").files).toHaveLength(2);
  });

  it.each([
    "../other/config.pbtxt",
    "1/../../x",
    "1/./x",
    "1//x",
    "//",
    "1/a\\b",
    "1/a\nb",
    "1/\u0000",
    `1/${"x".repeat(256)}`,
    "d/".repeat(16) + "x",
  ])("refuses the key %j", (key) => {
    expect(() => read(key)).toThrow(/^object in S3: given the key "/u);
  });

  it("refuses a folder with content, and a file that is a folder, too", () => {
    expect(() => read("1/")).toThrow("expected no content in a folder");
    expect(() => read("1/model", "1/model/data")).toThrow("expected a file or a folder");
    expect(() => read("1/model/data", "1/model")).toThrow("expected a file or a folder");
  });
});
