import { describe, expect, it } from "vitest";
import { commandLineOnly, environmentName } from "../../cli/environment.ts";
import { findFlag, flagGroups, flagTable } from "../../cli/flag-table.ts";
import type { Flag, FlagStatus } from "../../cli/flag.ts";
import { commandHelp } from "../../cli/help.ts";
import { readSettings } from "../../cli/settings.ts";
import { tritonFlags } from "../fixtures/triton-flags.ts";

type StatusOf<Kind extends FlagStatus["kind"]> = Extract<FlagStatus, { kind: Kind }>;

const rows = Object.entries<Flag>(flagTable);

/** The rows of one status, each with a text that its flag takes. */
function rowsThat<Kind extends FlagStatus["kind"]>(
  kind: Kind,
): [name: string, text: string, status: StatusOf<Kind>][] {
  const found: [string, string, StatusOf<Kind>][] = [];
  for (const [name, flag] of rows) {
    if (isStatus(flag.status, kind)) found.push([name, sampleOf(flag), flag.status]);
  }
  return found;
}

function isStatus<Kind extends FlagStatus["kind"]>(
  status: FlagStatus,
  kind: Kind,
): status is StatusOf<Kind> {
  return status.kind === kind;
}

function sampleOf(flag: Flag): string {
  const texts = [
    "true",
    "100",
    "10",
    "none",
    "explicit",
    "ISO8601",
    "off",
    "text",
    "inference:key=value",
    "R1:4",
    "ES256",
    "infer",
    "https://app.example",
  ];
  return texts.find((text) => flag.type.parse(text) !== undefined) ?? "";
}

function given(name: string, text: string): ReturnType<typeof readSettings> {
  return readSettings([`--${name}=${text}`], {});
}

describe("flagTable", () => {
  it("has a row for every flag of Triton", () => {
    expect(tritonFlags.length).toBeGreaterThan(80);
    expect(tritonFlags.filter((name) => findFlag(name) === undefined)).toEqual([]);
  });

  it("has every row in one group of the help text", () => {
    const grouped = flagGroups.flatMap(([, flags]) => Object.keys(flags));
    expect(grouped.toSorted()).toEqual(rows.map(([name]) => name).toSorted());
  });

  it("shows every row in the help text, within the terminal", () => {
    const help = ["dev", "pool", "keys", "push"]
      .map((command) => commandHelp(command, 80))
      .join("");
    expect(rows.filter(([name]) => !help.includes(`  --${name}`))).toEqual([]);
    expect(help.split("\n").filter((line) => line.length > 80)).toEqual([]);
  });

  it.each(rowsThat("works"))("takes --%s=%s without a warning", (name, text) => {
    expect(given(name, text).warnings).toEqual([]);
  });

  it.each(rowsThat("no effect"))("warns once that --%s=%s has no effect", (name, text, { why }) => {
    expect(given(name, text)).toEqual({
      ...readSettings([], {}),
      warnings: [`--${name} has no effect here: ${why}`],
    });
  });

  it.each(rowsThat("refused"))("refuses --%s=%s with its reason", (name, text, { why, unless }) => {
    expect(() => given(name, text)).toThrow(`--${name} is refused: ${why}`);
    const harmless = unless === "" ? [] : [`--${name}=${unless}`];
    expect(readSettings(harmless, {}).warnings).toEqual([]);
  });

  it.each(rowsThat("replaced"))("takes --%s=%s for its successor", (name, text, status) => {
    const successor = given(status.by, status.translate(text));
    const { settings, warnings } = given(name, text);
    expect(settings).toEqual(successor.settings);
    expect(warnings).toEqual([
      `--${name} is an old spelling of --${status.by}`,
      ...successor.warnings,
    ]);
  });

  it("takes from the environment what it takes from the command line", () => {
    const taken = rows.filter(
      ([name, flag]) => flag.status.kind !== "refused" && !commandLineOnly.has(name),
    );
    for (const [name, flag] of taken) {
      const text = sampleOf(flag);
      expect(readSettings([], { [environmentName(name)]: text })).toEqual(given(name, text));
    }
  });
});
