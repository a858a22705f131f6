#!/usr/bin/env node
/** The program `tidepool`: runs any command with a node that can, where the machine's own is too old. */
import { existsSync } from "node:fs";
import path from "node:path";
import { command } from "./command.js";
import { launch } from "./launch.js";
import { bringNode } from "./node.js";
import { installPackages } from "./packages.js";
import { root } from "./paths.js";

await command(async () => {
  await bringNode();
  // Packages that are there may be in use by others.
  if (!existsSync(path.join(root, "node_modules"))) await installPackages();
  const main = path.join(root, "cli", "main.ts");
  return launch([main, ...process.argv.slice(2)], { cwd: process.cwd() });
});
