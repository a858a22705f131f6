import { describe, expect, it } from "vitest";
import { extraHeaders } from "../../protocol/extra-headers.ts";

describe("extraHeaders", () => {
  it("reads pairs that stand on lines or between semicolons", () => {
    expect(extraHeaders("H", "X-Secret: a b=c:d\r\n\n x-other:e ; x-third: f;")).toEqual({
      "x-secret": "a b=c:d",
      "x-other": "e",
      "x-third": "f",
    });
    expect(extraHeaders("H", " \n")).toEqual({});
  });

  it.each(["hidden", "x=hidden", "x y: hidden", "x:", ": hidden", "x: hidd\u0000en", "x: hiddén"])(
    "refuses %j without telling it",
    (wrong) => {
      const text = "H: given no pair at place 2, expected name: value pairs";
      expect(() => extraHeaders("H", `good: hidden\n${wrong}`)).toThrow(text);
      expect(() => extraHeaders("H", `good: hidden\n${wrong}`)).not.toThrow("hidd");
    },
  );

  it("refuses what says how the request is to be read, and more than there should be", () => {
    for (const name of ["Host", "Content-Length", "transfer-encoding"])
      expect(() => extraHeaders("H", `${name}: 1`)).toThrow(`given '${name.toLowerCase()}'`);
    expect(() => extraHeaders("H", "x: 1;".repeat(33))).toThrow("expected at most 32");
  });
});
