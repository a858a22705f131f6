/** `npm run check`: the whole gate. Every part runs, so that one look shows all that is wrong. */
import { readFileSync } from "node:fs";
import { command } from "./command.js";
import { launch } from "./launch.js";
import { root } from "./paths.js";
import path from "node:path";
import { prepareTests } from "./prepare-tests.js";
import { say } from "./progress.js";

const parts = ["typecheck", "typecheck:edge", "lint", "format:check", "unused", "test"];
const { scripts } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));

await command(async () => {
  await prepareTests();
  const failed = [];
  for (const part of parts) {
    say(`check: ${part}`);
    // Without `exec node`, which launch adds in its own way.
    const [, , ...args] = scripts[part].split(" ");
    // One after the other: two of them at once fight for the machine, and their outputs mix.
    // oxlint-disable-next-line no-await-in-loop
    if ((await launch(args)) !== 0) failed.push(part);
  }
  say(failed.length === 0 ? "check: all passed" : `check: failed: ${failed.join(", ")}`);
  return failed.length === 0 ? 0 : 1;
});
