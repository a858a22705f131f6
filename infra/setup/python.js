import { existsSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { bringDebianPackage } from "./debian.js";
import { local, root } from "./paths.js";
import { execute, step } from "./progress.js";
import { unlessStamped } from "./stamp.js";

const folder = local("venv");
const requirements = path.join(root, "test", "requirements.txt");

/** Makes the Python environment of the tests: the clients that users have. The server itself needs no Python. */
export function installPython() {
  return unlessStamped({
    stamp: path.join(folder, ".tidepool-stamp"),
    inputs: [requirements],
    work: () => step("installing the Python packages of the tests", install),
  });
}

/** @param {string} name of a program that a package of the tests' environment brings @returns {string} its path */
export const pythonProgram = (name) => path.join(folder, "bin", name);

async function install() {
  await makeEnvironment(folder);
  await installPythonPackages("--requirement", requirements);
}

/** @param {string} which folder of a new and empty environment */
export async function makeEnvironment(which) {
  rmSync(which, { recursive: true, force: true });
  await execute("python3", ["-m", "venv", "--without-pip", which]);
}

/** @param {string[]} which as in "name==1.2.3": what only some machines need comes later than the rest */
export async function installPythonPackages(...which) {
  await installInto(folder, ...which);
}

/**
 * @param {string} environment its folder
 * @param {string[]} which arguments of `pip install`
 */
export async function installInto(environment, ...which) {
  const own = path.join(environment, "bin", "python");
  await execute(own, [await pip(), "install", "--quiet", ...which]);
}

/** A pip to start with: Debian leaves it out of Python, and packs it as a wheel, which runs as it is. */
async function pip() {
  const wheels = path.join("usr", "share", "python-wheels");
  const system = findPip(path.join("/", wheels));
  if (system !== undefined) return system;
  const brought = findPip(path.join(await bringDebianPackage("python3-pip-whl"), wheels));
  if (brought === undefined) throw new Error("the package python3-pip-whl has no pip in it");
  return brought;
}

function findPip(wheels) {
  if (!existsSync(wheels)) return undefined;
  const wheel = readdirSync(wheels).find((file) => /^pip-.*\.whl$/u.test(file));
  return wheel && path.join(wheels, wheel, "pip");
}
