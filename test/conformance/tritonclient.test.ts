import { readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { expectations, readDifferences, runCases, type Observation } from "./cases.ts";
import { shapes, startWithModels, type RunningServer } from "./servers.ts";

const expected = expectations();

describe.each(shapes)("tidepool %s, asked by tritonclient", (shape) => {
  let server: RunningServer | undefined;
  let observations = new Map<string, Observation>();

  beforeAll(async () => {
    server = await startWithModels(shape);
    observations = await runCases(server);
  }, 240_000);

  afterAll(async () => {
    await server?.stop();
  });

  it.each([...expected.keys()])("%s", (title) => {
    const { case: _, ...seen } = observations.get(title) ?? { case: title, failed: "did not run" };
    expect(seen).toEqual({ observed: expected.get(title) });
  });

  it("is expected to answer in every case", () => {
    expect([...observations.keys()].filter((title) => !expected.has(title))).toEqual([]);
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
