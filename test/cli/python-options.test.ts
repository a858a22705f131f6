import path from "node:path";
import { describe, expect, it } from "vitest";
import { checkPython } from "../../cli/python-options.ts";

const { dir, base } = path.parse(process.execPath);

describe("checkPython", () => {
  it.each([process.execPath, path.relative(process.cwd(), process.execPath), base, undefined])(
    "takes %s for a program",
    (given) => {
      expect(() => checkPython(given, `/nowhere:${dir}`)).not.toThrow();
    },
  );

  it.each(["/nowhere/python", "no-such-python", dir, import.meta.filename])(
    "refuses %s, which cannot be run",
    (given) => {
      expect(() => checkPython(given, dir)).toThrow(
        `--python: given '${given}', expected a Python interpreter that can be run`,
      );
    },
  );

  it("finds nothing by its name alone where nothing is searched", () => {
    expect(() => checkPython(base)).toThrow("--python");
  });
});
