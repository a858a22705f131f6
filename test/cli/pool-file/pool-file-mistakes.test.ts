import { describe, expect, it } from "vitest";
import { parsePoolFile } from "../../../cli/pool-file/pool-file.ts";
import { UsageError } from "../../../cli/usage-error.ts";

function mistakesOf(text: string): readonly string[] {
  try {
    parsePoolFile(text, "tidepool.yaml");
    return [];
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return error.message.split("\n");
  }
}

/** The mistakes in a file whose one pool has another field, on the fourth line. */
function mistakesWith(field: string): readonly string[] {
  return mistakesOf(`pools:\n  - name: a\n    models: [x]\n    ${field}\n`);
}

function poolLine(name: string, models: string): string {
  return `- {name: ${name}, models: ${models}}\n`;
}

const kubernetes = "expected 1 to 63 characters of a-z, 0-9 and '-', without a '-' at either end";

describe("parsePoolFile refuses", () => {
  it.each([
    ["min-workers: -1", "given -1, expected a whole number from 0 to 1000"],
    ["max-workers: 0", "given 0, expected a whole number from 1 to 1000"],
    ["max-workers: 1001", "given 1001, expected a whole number from 1 to 1000"],
    ["max-workers: '4'", 'given "4", expected a whole number from 1 to 1000'],
    ["target-in-flight: 1.5", "given 1.5, expected a whole number from 1 to 100000"],
    ["idle-seconds: 60s", 'given "60s", expected a number of seconds from 0 to 86400'],
    ["idle-seconds: .nan", "given .nan, expected a number of seconds from 0 to 86400"],
    ["idle-seconds:", "given nothing, expected a number of seconds from 0 to 86400"],
    ["stable-window-seconds: 0", "given 0, expected a number of seconds from 1 to 3600"],
    ["memory-budget-mb: true", "given true, expected a number of MiB from 1 to 16777216"],
    ["concurrency: [1]", "given a list of 1, expected a whole number from 1 to 1024"],
    ["concurrency: {}", "given a mapping, expected a whole number from 1 to 1024"],
    ["device: gpu:01", 'given "gpu:01", expected auto, cpu, gpu or gpu:<id>'],
    [
      "scaler: kubernetes",
      'given "kubernetes", expected process, none, keda, or kubernetes with a namespace and a deployment',
    ],
    ["scaler: *x", "given the alias *x, expected process, none"],
    [`device: ${"x".repeat(99)}`, `given "${"x".repeat(64)}…", expected auto`],
  ])("%s", (field, text) => {
    const [key] = field.split(":");
    const [mistake, ...others] = mistakesWith(field);
    expect(mistake).toContain(`tidepool.yaml:4: pools[0].${key}: ${text}`);
    expect(others).toEqual([]);
  });

  it("a namespace that could leave its place in a URL, and a deployment that is missing", () => {
    expect(mistakesWith("scaler: {kubernetes: {namespace: a/b}}")).toEqual([
      `tidepool.yaml:4: pools[0].scaler.kubernetes.namespace: given "a/b", ${kubernetes}`,
      `tidepool.yaml:4: pools[0].scaler.kubernetes.deployment: given nothing, ${kubernetes}`,
    ]);
  });

  it.each(["A", "-a", "a-", "a_b", "a".repeat(41), "", "12"])("the name %s", (name) => {
    const text = `pools:\n  - models: [x]\n    name: ${name}\n`;
    expect(mistakesOf(text)).toEqual([
      expect.stringContaining("tidepool.yaml:3: pools[0].name: given "),
    ]);
  });

  it.each(["../x", ".x", "a/b", "''", "12", "x".repeat(256), "*x"])("the pattern %s", (pattern) => {
    const text = `pools:\n  - name: a\n    models:\n      - y\n      - ${pattern}\n`;
    expect(mistakesOf(text)).toEqual([
      expect.stringContaining("tidepool.yaml:5: pools[0].models[1]: given "),
    ]);
  });

  it("a maximum below the minimum, on the maximum's line", () => {
    const text = "pools:\n- name: a\n  models: [x]\n  max-workers: 2\n  min-workers: 5\n";
    expect(mistakesOf(text)).toEqual([
      "tidepool.yaml:4: pools[0].max-workers: given 2, expected min-workers, which is 5, or more",
    ]);
  });

  it("a name that is given to a second pool", () => {
    const text = "pools:\n- name: a\n  models: [x]\n- name: a\n  models: [y]\n";
    expect(mistakesOf(text)).toEqual([
      'tidepool.yaml:4: pools[1].name: given "a", expected another name than that of pools[0]',
    ]);
  });

  it("a pool that no model can reach, and none that some can", () => {
    const reachable =
      poolLine("a", '["bert*"]') + poolLine("b", '["bert-2", "x*"]') + poolLine("c", '["*"]');
    expect(mistakesOf(`pools:\n${reachable}`)).toEqual([]);
    expect(mistakesOf(`pools:\n${reachable}${poolLine("d", "[y]")}`)).toEqual([
      "tidepool.yaml:5: pools[3].models: given only models that pools above serve, expected one that reaches this pool, or this pool above the others",
    ]);
  });

  it("unknown keys, with the nearest name or all of them", () => {
    expect(mistakesWith("max-wrokers: 4")).toEqual([
      "tidepool.yaml:4:5: pools[0].max-wrokers: unknown key; did you mean max-workers?",
    ]);
    expect(mistakesWith("scaler: {k8s: 1, kubernetes: {namespace: a, deployment: b}}")).toEqual([
      "tidepool.yaml:4:14: pools[0].scaler.k8s: unknown key; expected one of kubernetes",
    ]);
    expect(mistakesWith('"\\e[31m": 4')).toEqual([
      expect.stringContaining('tidepool.yaml:4:5: pools[0]."\\u001b[31m": unknown key'),
    ]);
  });

  it("a key that is given twice", () => {
    expect(mistakesWith("name: b")).toEqual([
      "tidepool.yaml:4: pools[0].name: given twice, expected once",
    ]);
  });

  it("the merge key of older YAML", () => {
    const text =
      "%YAML 1.1\n---\npools:\n- &a {name: a, models: [x]}\n- {<<: *a, name: b, models: [y]}\n";
    expect(mistakesOf(text)).toEqual([
      expect.stringContaining('tidepool.yaml:5:4: pools[1]."<<": unknown key'),
    ]);
  });

  it.each([
    ["", "1: given nothing, expected a mapping with pools"],
    ["- a", "1: given a list of 1, expected a mapping with pools"],
    ["{}", "1: pools: given nothing, expected a list of 1 to 64 pools"],
    ["pools: []", "1: pools: given a list of 0, expected a list of 1 to 64 pools"],
    ["pools: [x]", '1: pools[0]: given "x", expected a mapping with name, models, '],
    [
      `pools: [{name: a, models: [${"x, ".repeat(101)}]}]`,
      "1: pools[0].models: given a list of 101, expected a list of 1 to 100 patterns",
    ],
    [
      "pools:\n- models: [*]",
      "2:12: given an alias without a name; what starts with '*' needs quotes",
    ],
    ["pools:\n- models: [x", "2:13: "],
    ["pools: !custom []", "1:8: Unresolved tag: !custom"],
    ["pools: []\n---\npools: []", "2:1: given another document, expected one"],
  ])("the file %j", (text, mistake) => {
    expect(mistakesOf(text)[0]).toContain(`tidepool.yaml:${mistake}`);
  });

  it("files that would take much time or memory", () => {
    const levels = Array.from({ length: 20 }, (_, i) => `a${i}: &a${i} [*a${i + 1}, *a${i + 1}]`);
    const loop = "pools: &a\n- name: a\n  models: *a\n";
    const hostile = ["[".repeat(100_000), levels.join("\n"), loop, "k: 1\n".repeat(50_000)];
    for (const text of hostile) expect(mistakesOf(text)).not.toEqual([]);
  });

  it("all mistakes of a file at once, sorted by line", () => {
    const text = "pol: 1\npools:\n- scaler: x\n  name: A\n- device: y\n  models: [z]\n  name: A\n";
    const lines = mistakesOf(text).map((mistake) => Number(mistake.split(":")[1]));
    expect(lines).toEqual([1, 3, 3, 4, 5, 7]);
  });

  it("more than fifty mistakes, showing fifty", () => {
    const mistakes = mistakesOf(`${Array.from({ length: 60 }, (_, i) => `x${i}: 1`).join("\n")}\n`);
    // The list of pools is missing, too.
    expect(mistakes).toHaveLength(51);
    expect(mistakes.at(-1)).toBe("and 11 more");
  });
});
