import { defineConfig } from "vitest/config";

/** Each file runs in a process of its own: some start worker threads, native sessions and servers. */
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    testTimeout: 20_000,
    hookTimeout: 60_000,
    reporters: ["default", "json"],
    outputFile: { json: ".tidepool/test-report.json" },
  },
});
