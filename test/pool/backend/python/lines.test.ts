import { PassThrough } from "node:stream";
import { finished } from "node:stream/promises";
import { describe, expect, it } from "vitest";
import { onLines } from "../../../../pool/backend/python/lines.ts";

async function linesOf(...chunks: readonly string[]): Promise<readonly string[]> {
  const stream = new PassThrough();
  const lines: string[] = [];
  onLines(stream, (line) => lines.push(line));
  for (const chunk of chunks) stream.write(chunk);
  stream.end();
  await finished(stream);
  stream.destroy();
  return lines;
}

describe("onLines", () => {
  it("tells lines as they were printed, however they came", async () => {
    expect(await linesOf("one\ntw", "o\n\nthr", "ee")).toEqual(["one", "two", "", "three"]);
  });

  it.each(["x".repeat(20_000), "x".repeat(20_000) + "\n"])(
    "cuts a line that is too long to keep, with an end or without",
    async (text) => {
      const lines = await linesOf(text.slice(0, 15_000), text.slice(15_000));
      expect(lines.map(({ length }) => length)).toEqual([8192, 8192, 3616]);
    },
  );
});
