import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import manifest from "../package.json" with { type: "json" };

const root = path.resolve(import.meta.dirname, "..");

function pageOf(name: string): string {
  return readFileSync(path.join(root, name), "utf8");
}

/** What stands in back-ticks and looks like a path: it has a slash or ends like a source. */
function pathsIn(page: string): readonly string[] {
  return [...page.matchAll(/`(?<path>[\w.-]+\/[\w./-]*|[\w-]+\.ts)`/gu)].map(
    ([, found]) => found ?? "",
  );
}

/** The first column of the table under a heading, without the table's head. */
function firstColumn(page: string, heading: string): readonly string[] {
  const [, section = ""] = page.split(`\n## ${heading}\n`);
  return [...section.matchAll(/^\| (?<cell>[^|]+?) *\|/gmu)].map(([, cell]) => cell ?? "").slice(2);
}

describe.each(["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/protocol-differences.md"])(
  "%s",
  (name) => {
    it("names only files and folders that exist", () => {
      const paths = pathsIn(pageOf(name));
      expect(paths).not.toEqual([]);
      expect(paths.filter((one) => !existsSync(path.join(root, one)))).toEqual([]);
    });
  },
);

describe("ARCHITECTURE.md, Dependencies", () => {
  it("gives the reason of every package that package.json depends on, and of no other", () => {
    const named = firstColumn(pageOf("ARCHITECTURE.md"), "Dependencies").flatMap((cell) =>
      cell.split(", "),
    );
    expect(new Set(named)).toEqual(new Set(Object.keys(manifest.dependencies)));
  });
});
