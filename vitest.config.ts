import { defineConfig } from "vitest/config";

/** Each file runs in a process of its own: some start worker threads, native sessions and servers. */
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // Thousands of tests with real processes on a busy machine: one miss of one does not hold a change back, and the report shows it.
    retry: process.env["NIGHTLY"] === undefined ? 1 : 0,
    reporters: ["default", "json"],
    outputFile: { json: ".tidepool/test-report.json" },
  },
});
