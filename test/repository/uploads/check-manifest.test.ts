import { describe, expect, it } from "vitest";
import type { UploadFile } from "../../../protocol/upload.ts";
import { checkManifest } from "../../../repository/uploads/check-manifest.ts";

const maxBytes = 1000;

function file(name: string, more: Partial<UploadFile> = {}): UploadFile {
  return { name, bytes: 1, sha256: "0".repeat(64), shared: false, ...more };
}

function check(...files: readonly UploadFile[]): () => void {
  return () => checkManifest(files, { maxBytes });
}

describe("checkManifest", () => {
  it("takes the files that models consist of", () => {
    const names = ["model.onnx", "onnx__MatMul_12", "model.savedmodel/variables/variables.data"];
    const more = ["tokenizer (1).json", "weights-00001-of-00002.bin", "a~b@c+d=e,f", "_init.py"];
    expect(check(...[...names, ...more].map((name) => file(name)))).not.toThrow();
    expect(check(file("config.pbtxt", { shared: true }), file("x"))).not.toThrow();
    expect(check(file("same", { shared: true }), file("same"))).not.toThrow();
  });

  it.each([
    "",
    "/etc/passwd",
    "../model.onnx",
    "a/../../b",
    "a/./b",
    "a//b",
    "a/",
    "./a",
    ".hidden",
    "a/.hidden",
    ".tidepool-change-00",
    "a\\b",
    "C:\\x",
    "C:x",
    "a\0b",
    "a\nb",
    "a\u202eb",
    "NUL",
    "aux.txt",
    "folder/com1",
    "LPT9.onnx",
    "ends.",
    "ends ",
    "-rf",
    "~root",
    "a".repeat(256),
    `${"a/".repeat(8)}b`,
    `${"a".repeat(200)}/${"b".repeat(200)}/${"c".repeat(200)}`,
  ])("refuses %j as the name of a file", (name) => {
    expect(check(file(name))).toThrow(/^file /u);
    expect(check(file(name, { shared: true }))).toThrow(/^file /u);
  });

  it("refuses files that one system or the other would take for the same", () => {
    expect(check(file("a"), file("a"))).toThrow("given 'a', too");
    expect(check(file("Model.onnx"), file("model.ONNX"))).toThrow("given 'Model.onnx', too");
    expect(check(file("a"), file("A/b"))).toThrow("a file or a folder");
    expect(check(file("a/b/c"), file("a/B"))).toThrow("a file or a folder");
  });

  it("refuses folders of versions among the files of all versions", () => {
    expect(check(file("1/model.onnx", { shared: true }))).toThrow("no folder of a version");
    expect(check(file("1/model.onnx"))).not.toThrow();
  });

  it("bounds how many files there are, and how large they are", () => {
    expect(check()).toThrow("given 0, expected 1 to 2000");
    const many = Array.from({ length: 2001 }, (_, at) => file(`f${at}`, { bytes: 0 }));
    expect(check(...many)).toThrow("given 2001, expected 1 to 2000");
    expect(check(...many.slice(1))).not.toThrow();
    const [half, more] = [file("a", { bytes: 500 }), file("b", { bytes: 501 })];
    expect(check(half, more)).toThrow("given 1001 bytes, expected at most 1000");
    for (const bytes of [-1, 0.5, NaN, Infinity, 2 ** 53])
      expect(check(file("a", { bytes }))).toThrow("expected a whole number");
  });

  it("refuses what is no SHA-256", () => {
    for (const sha256 of ["", "0".repeat(63), "A".repeat(64), `${"0".repeat(63)}g`])
      expect(check(file("a", { sha256 }))).toThrow("64 lower-case hexadecimal digits");
  });
});
