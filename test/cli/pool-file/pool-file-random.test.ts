import {
  array,
  assert,
  boolean,
  constantFrom,
  integer,
  nat,
  oneof,
  property,
  record,
  string,
  type Arbitrary,
} from "fast-check";
import { describe, expect, it } from "vitest";
import { modelPattern } from "../../../protocol/model-pattern.ts";
import { parsePoolFile } from "../../../cli/pool-file/pool-file.ts";
import { poolDefaults, type Pool } from "../../../cli/pool-file/pool.ts";

/** One field: the line that writes it, without its indentation, and what it makes of the pool. */
interface Field {
  readonly line: string;
  readonly becomes: Partial<Pool>;
}

function numberField(key: string, name: keyof Pool, values: Arbitrary<number>, unit = 1) {
  return values.map((value): Field => ({
    line: `${key}: ${value}`,
    becomes: { [name]: value * unit },
  }));
}

const dnsName = string({ unit: constantFrom("a", "7", "-"), maxLength: 60 }).map((s) => `x${s}x`);

const scaler = oneof(
  constantFrom("process" as const, "none" as const, "keda" as const).map((kind): Field => ({
    line: `scaler: ${kind}`,
    becomes: { scaler: { kind } },
  })),
  record({ namespace: dnsName, deployment: dnsName }).map((names): Field => ({
    line: `scaler: {"kubernetes": ${JSON.stringify(names)}}`,
    becomes: { scaler: { kind: "kubernetes", ...names } },
  })),
);

const device = oneof(
  constantFrom("auto" as const, "cpu" as const, "gpu" as const).map((kind): Field => ({
    line: `device: ${kind}`,
    becomes: { device: { kind } },
  })),
  nat(99).map((id): Field => ({
    line: `device: gpu:${id}`,
    becomes: { device: { kind: "gpu", id } },
  })),
);

/** Each field is there or not. */
const fields = record(
  {
    min: numberField("min-workers", "minWorkers", integer({ min: 0, max: 4 })),
    max: numberField("max-workers", "maxWorkers", integer({ min: 4, max: 1000 })),
    target: numberField("target-in-flight", "targetInFlight", integer({ min: 1, max: 100_000 })),
    idle: numberField("idle-seconds", "idleMilliseconds", nat(86_400), 1000),
    window: numberField(
      "stable-window-seconds",
      "stableWindowMilliseconds",
      integer({ min: 1, max: 3600 }),
      1000,
    ),
    budget: numberField(
      "memory-budget-mb",
      "memoryBudgetBytes",
      integer({ min: 1, max: 16_777_216 }),
      2 ** 20,
    ),
    concurrency: numberField("concurrency", "concurrency", integer({ min: 1, max: 1024 })),
    scaler,
    device,
  },
  { requiredKeys: [] },
);

const patternTexts = string({
  unit: constantFrom("a", "*", ".", "?", " ", '"', "'", "#", ":", "é", "[", "\u2028"),
  maxLength: 8,
});

/** Pools in a file: with a comment above each, so that lines and pools do not go in step. */
const files = array(
  record({
    fields,
    patterns: array(patternTexts, { minLength: 1, maxLength: 3 }),
    note: boolean(),
  }),
  { minLength: 1, maxLength: 4 },
).map((pools) => {
  const lines = ["pools:"];
  const expected = pools.map(({ fields: given, patterns, note }, index): Pool => {
    // Begun with the pool's own name, no pattern covers another pool's.
    const models = patterns.map((text) => `m${index}-${text}`);
    if (note) lines.push("", "  # another pool");
    lines.push(`  - name: p${index}`, "    models:");
    lines.push(...models.map((text) => `      - ${JSON.stringify(text)}`));
    const all = Object.values(given);
    lines.push(...all.map(({ line }) => `    ${line}`));
    return Object.assign(
      { ...poolDefaults, name: `p${index}`, models: models.map(modelPattern) },
      ...all.map(({ becomes }) => becomes),
    );
  });
  return { lines, expected };
});

/** A file with one line changed by `change`, which gets the line cut at its key. */
function mutated(
  lines: readonly string[],
  pick: number,
  change: (parts: { before: string; key: string; after: string }) => string,
) {
  const keyed = lines
    .map((line, index) => ({
      index,
      parts: /^(?<before>[ -]*)(?<key>[a-z-]+):(?<after>.*)$/u.exec(line),
    }))
    .filter(({ parts }) => parts !== null);
  const { index, parts } = keyed[pick % keyed.length] ?? { index: 0, parts: null };
  const [, before = "", key = "", after = ""] = parts ?? [];
  const text = lines.with(index, change({ before, key, after })).join("\n");
  return { text, line: index + 1, column: before.length + 1, key };
}

describe("parsePoolFile", () => {
  it("reads every file that is right", () => {
    assert(
      property(files, ({ lines, expected }) => {
        expect(parsePoolFile(lines.join("\n"), "f")).toEqual({ pools: expected });
      }),
    );
  });

  it("names line and column of any key that is mistyped, and the key that was meant", () => {
    assert(
      property(files, nat(), ({ lines }, pick) => {
        const { text, line, column, key } = mutated(
          lines,
          pick,
          (parts) => `${parts.before}${parts.key}x:${parts.after}`,
        );
        const mistake = new RegExp(
          `^f:${line}:${column}: (pools\\[\\d\\]\\.)?${key}x: unknown key; did you mean ${key}\\?$`,
          "mu",
        );
        expect(() => parsePoolFile(text, "f")).toThrow(mistake);
      }),
    );
  });

  it("names the line of any value that is wrong", () => {
    assert(
      property(files, nat(), ({ lines }, pick) => {
        // Items that follow a changed line would be no YAML; they are of no use here.
        const flat = lines.filter((line) => !line.startsWith("      - "));
        const { text, line, key } = mutated(
          flat.slice(1),
          pick,
          (parts) => `${parts.before}${parts.key}: []`,
        );
        const mistake = new RegExp(
          `^f:${line + 1}: pools\\[\\d\\]\\.${key}: given a list of 0, expected `,
          "mu",
        );
        expect(() => parsePoolFile(`pools:\n${text}`, "f")).toThrow(mistake);
      }),
    );
  });
});
