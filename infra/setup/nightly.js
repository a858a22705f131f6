/** `npm run nightly`: what takes too long for each change: the reference asked again, and minutes of killed processes. */
import { command } from "./command.js";
import { launch } from "./launch.js";
import { prepareTests } from "./prepare-tests.js";
import { say } from "./progress.js";
import { toolScript } from "./tools.js";

const parts = {
  reference: () => launch(["test/conformance/compare-reference.ts"]),
  faults: () => launch([toolScript("vitest"), "run", "test/faults/lost-processes.test.ts"]),
};

await command(async () => {
  await prepareTests();
  // The faults' tests go on for longer then.
  process.env["NIGHTLY"] = "1";
  const failed = [];
  for (const [part, run] of Object.entries(parts)) {
    say(`nightly: ${part}`);
    // oxlint-disable-next-line no-await-in-loop -- two at once would fight for the machine
    if ((await run()) !== 0) failed.push(part);
  }
  say(failed.length === 0 ? "nightly: all passed" : `nightly: failed: ${failed.join(", ")}`);
  return failed.length === 0 ? 0 : 1;
});
