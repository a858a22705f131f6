import { readFileSync } from "node:fs";
import path from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { expectations, readDifferences, runCases, type Observation } from "./cases.ts";
import { shapes, startWithModels } from "./servers.ts";

const expected = expectations();

describe.each(shapes)("tidepool %s, asked by tritonclient", (shape) => {
  // One shape after the other: many cases measure time.
  let seenBy = new Map<string, Observation>();
  beforeAll(async () => {
    seenBy = await ask(shape);
  }, 180_000);

  it.each([...expected.keys()])("%s", (title) => {
    const { case: _, ...seen } = seenBy.get(title) ?? missing(title);
    expect(seen).toEqual({ observed: expected.get(title) });
  });

  it("is expected to answer in every case", () => {
    const titles = [...seenBy.keys()];
    expect(titles.filter((title) => !expected.has(title))).toEqual([]);
  });
});

describe("docs/protocol-differences.md", () => {
  it("gives the reason of every difference from the reference, and no others", () => {
    const page = readFileSync(
      path.join(import.meta.dirname, "../../docs/protocol-differences.md"),
      "utf8",
    );
    const [recorded = ""] = page.split("## Limits and defaults");
    const points = [...recorded.matchAll(/^- (?<point>.+)$/gmu)].map(([, point]) => point);
    const reasons = new Set(readDifferences().map(({ reason }) => reason));
    expect(new Set(points)).toEqual(reasons);
  });
});

async function ask(shape: (typeof shapes)[number]): Promise<Map<string, Observation>> {
  const server = await startWithModels(shape);
  try {
    return await runCases(server);
  } finally {
    await server.stop();
  }
}

function missing(title: string): Observation {
  return { case: title, failed: "did not run" };
}
