import { rmSync } from "node:fs";
import path from "node:path";
import { environment } from "./node.js";
import { root } from "./paths.js";
import { execute, step } from "./progress.js";
import { unlessStamped } from "./stamp.js";

const folder = path.join(root, "node_modules");

/** Installs what package-lock.json names. */
export function installPackages() {
  return unlessStamped({
    stamp: path.join(folder, ".tidepool-stamp"),
    inputs: [path.join(root, "package-lock.json")],
    work: () => step("installing the npm packages", install),
  });
}

/**
 * What `npm ci` does, which refuses a lock file that leaves out other platforms' binaries, as a registry without them
 * makes it. `--no-save` keeps the lock file as it is; development tools come along whatever NODE_ENV says, because the
 * same folder serves `npm start` and `npm test`.
 */
async function install() {
  rmSync(folder, { recursive: true, force: true });
  await execute("npm", ["install", "--no-save", "--include=dev"], {
    cwd: root,
    env: environment(),
  });
}
