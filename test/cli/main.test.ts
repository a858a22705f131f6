import { spawnSync } from "node:child_process";
import path from "node:path";
import { describe, expect, it } from "vitest";
import manifest from "../../package.json" with { type: "json" };

function tidepool(...args: readonly string[]): { code: number | null; out: string; err: string } {
  const main = path.resolve(import.meta.dirname, "../../cli/main.ts");
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
    encoding: "utf8",
  });
  return { code: status, out: stdout, err: stderr };
}

describe("tidepool", () => {
  it("prints its version", () => {
    expect(tidepool("--version")).toMatchObject({ code: 0, out: `tidepool ${manifest.version}\n` });
  });

  it.each(["--help", "-h"])("prints help for %s", (help) => {
    expect(tidepool(help).out).toContain("Usage: tidepool <command>");
    expect(tidepool("serve", help).out).toContain("--model-repository=<path>");
  });

  it.each(["serve", "pool", "dev"])("refuses %s an interpreter that is not there", (command) => {
    expect(tidepool(command, "--model-repository=.", "--python=/nowhere/python")).toEqual({
      code: 2,
      out: "",
      err: "tidepool: --python: given '/nowhere/python', expected a Python interpreter that can be run\n",
    });
  });

  it.each([
    [[], "tidepool: given no command, expected one of serve, gateway, pool"],
    [["severe"], "tidepool: given 'severe', expected one of serve, gateway, pool"],
    [["serve", "--http-prt=1"], "tidepool: unknown flag --http-prt; did you mean --http-port?"],
    [["serve"], "tidepool: --model-repository: given nothing"],
    [["push"], "tidepool: push: given no folder, expected one folder of a model"],
    [["push", "a", "b"], "tidepool: push: given 1 more, expected one folder of a model"],
    [
      ["push", "--version=1", "a"],
      "given 'a', expected a flag, as in --http-port=8000; the folder",
    ],
    [["keys", "rotate", "--api-keys=f", "a"], "; an id comes before the flags"],
    [["autoscaler"], "tidepool: --model-repository: given nothing"],
    [["serve", "--redis-url=redis://127.0.0.1"], "--redis-url: given to serve, which has no use"],
    [
      ["serve", "--model-repository=.", "--metrics-config=x=1"],
      "tidepool: --metrics-config: given 'x=1'",
    ],
    [
      ["serve", "--model-repository=.", `--log-file=${import.meta.filename}/x`],
      "tidepool: --log-file: given ",
    ],
    [["serve", "--model-repository=/nowhere"], "tidepool: --model-repository: given /nowhere, "],
  ])("ends with 2 and one line for %j", (args, message) => {
    const { code, out, err } = tidepool(...args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(message);
    expect(err.trim().split("\n")).toHaveLength(1);
  });
});
