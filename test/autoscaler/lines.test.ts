import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { forEachLine } from "../../autoscaler/lines.ts";

async function linesOf(chunks: readonly Buffer[]): Promise<string[]> {
  const lines: string[] = [];
  const stream = Readable.from(chunks);
  const { promise, resolve } = Promise.withResolvers<void>();
  forEachLine(stream, (line) => lines.push(line));
  stream.on("end", resolve);
  await promise;
  return lines;
}

describe("forEachLine", () => {
  it("puts lines together that come in pieces, and takes them apart", async () => {
    const chunks = ["on", "e\ntwo\nth", "ree\n\nfive"].map((text) => Buffer.from(text));
    expect(await linesOf(chunks)).toEqual(["one", "two", "three", "", "five"]);
  });

  it("keeps characters whole whose bytes come apart", async () => {
    const bytes = Buffer.from("tidepööl 🌊\n");
    const chunks = [...bytes].map((byte) => Buffer.from([byte]));
    expect(await linesOf(chunks)).toEqual(["tidepööl 🌊"]);
  });

  it("hands on a line without an end in pieces", async () => {
    const lines = await linesOf([Buffer.alloc(40_000, "x"), Buffer.from("y\nz")]);
    expect(lines.map(({ length }) => length)).toEqual([16_384, 16_384, 7233, 1]);
  });
});
