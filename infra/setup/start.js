/** `npm start`: sets up what is missing and serves the example models; flags after `--` go to `tidepool serve`. */
import { command } from "./command.js";
import { launch } from "./launch.js";
import { bringNode } from "./node.js";
import { installPackages } from "./packages.js";

const flags = process.argv.slice(2);
const named =
  flags.some((flag) => /^--model-(?:repository|store)(?:=|$)/u.test(flag)) ||
  ["TIDEPOOL_MODEL_REPOSITORY", "TIDEPOOL_MODEL_STORE"].some((name) => process.env[name]);
const examples = named ? [] : ["--model-repository=examples/models"];

await command(async () => {
  await bringNode();
  await installPackages();
  return launch(["cli/main.ts", "serve", ...examples, ...flags]);
});
