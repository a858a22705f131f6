import { homedir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { defaultCacheDirectory } from "../../cli/cache-directory.ts";

describe("defaultCacheDirectory", () => {
  it("is where XDG_CACHE_HOME says", () => {
    expect(defaultCacheDirectory({ XDG_CACHE_HOME: "/var/cache/me" })).toBe(
      "/var/cache/me/tidepool",
    );
  });

  it.each([{}, { XDG_CACHE_HOME: "" }, { XDG_CACHE_HOME: "relative" }])(
    "is in the home directory with %j",
    (environment) => {
      expect(defaultCacheDirectory(environment)).toBe(path.join(homedir(), ".cache", "tidepool"));
    },
  );
});
