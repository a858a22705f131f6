/** `node infra/setup/tool.js <program> …`: runs a tool of node_modules, or a script of ours, with the right node. */
import { command } from "./command.js";
import { launch } from "./launch.js";
import { bringNode } from "./node.js";
import { installPackages } from "./packages.js";
import { toolScript } from "./tools.js";

const [program = "", ...args] = process.argv.slice(2);

await command(async () => {
  await bringNode();
  await installPackages();
  return launch([program.endsWith(".ts") ? program : toolScript(program), ...args]);
});
