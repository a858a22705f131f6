/** `node infra/setup/test-counts.js <report>`: what vitest's JSON report says, in one line. */
import { existsSync, readFileSync } from "node:fs";

const [file = ""] = process.argv.slice(2);

/** A test file that could not even start has no tests to count: it is one failure. */
function counts(report) {
  const broken = report.testResults.filter(
    (result) => result.status === "failed" && result.assertionResults.length === 0,
  );
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + broken.length,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

const { passed, failed, skipped } = existsSync(file)
  ? counts(JSON.parse(readFileSync(file, "utf8")))
  : { passed: 0, failed: 1, skipped: 0 };
const skippedText = skipped > 0 ? `, ${skipped} skipped` : "";
process.stdout.write(`${passed} passed, ${failed} failed${skippedText}\n`);
