import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { local } from "./paths.js";
import { execute, step } from "./progress.js";

const oldest = [22, 18];
const brought = "24.21.0";
const packageName = `node-linux-${process.arch}`;
const folder = local("toolchain", "node_modules", packageName);

/** True when this very process could run the TypeScript sources. */
function isRecent(version) {
  const [major, minor] = version.split(".").map(Number);
  return major > oldest[0] || (major === oldest[0] && minor >= oldest[1]);
}

function isBrought() {
  const manifest = path.join(folder, "package.json");
  if (!existsSync(manifest) || !existsSync(path.join(folder, "bin", "node"))) return false;
  return JSON.parse(readFileSync(manifest, "utf8")).version === brought;
}

/** The node that runs everything: this one, or the one that the set-up brought because this one is too old. */
export function nodePath() {
  return isRecent(process.versions.node) ? process.execPath : path.join(folder, "bin", "node");
}

/**
 * The environment in which `node`, `npm` and the development tools are the right ones. The sources are compiled once for
 * all processes and threads: without this, each loads the compiler, which costs 30 MB and a third of a second.
 */
export function environment() {
  return {
    NODE_COMPILE_CACHE: local("compile-cache"),
    ...process.env,
    PATH: [path.dirname(nodePath()), process.env.PATH].join(path.delimiter),
  };
}

/** True when {@link nodePath} can be started. */
function hasNode() {
  return isRecent(process.versions.node) || isBrought();
}

/** Brings a node from the npm registry where the machine's own is older than the sources need. */
export async function bringNode() {
  if (hasNode()) return;
  if (process.platform !== "linux") {
    throw new Error(
      `node ${process.versions.node} is too old: install ${oldest.join(".")} or newer`,
    );
  }
  await step(`bringing Node ${brought}, because this is ${process.versions.node}`, () =>
    execute("npm", [
      "install",
      `--prefix=${local("toolchain")}`,
      "--no-save",
      "--ignore-scripts",
      `${packageName}@${brought}`,
    ]),
  );
}
