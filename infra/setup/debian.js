import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import { local } from "./paths.js";
import { execute, step } from "./progress.js";

/** Package lists of our own, so that nothing on the machine changes and nobody has to be root. */
const privateLists = [
  `-oDir::State::Lists=${local("apt", "lists")}`,
  `-oDir::Cache=${local("apt", "cache")}`,
];

/** @param {string} program @returns {boolean} true when the machine has it already */
export function onPath(program) {
  const folders = (process.env.PATH ?? "").split(path.delimiter);
  return folders.some((folder) => existsSync(path.join(folder, program)));
}

/**
 * Unpacks one Debian package, without what it depends on, and without installing anything.
 *
 * @param {string} name of the package
 * @returns {Promise<string>} the folder that stands for `/`
 */
export async function bringDebianPackage(name) {
  const folder = local("debian", name);
  if (existsSync(folder)) return folder;
  await step(`bringing the Debian package ${name}`, async () => {
    const work = local("debian", `.${name}`);
    rmSync(work, { recursive: true, force: true });
    mkdirSync(work, { recursive: true });
    await download(name, work);
    const archive = readdirSync(work).find((file) => file.endsWith(".deb"));
    if (archive === undefined) throw new Error(`apt-get brought no archive of ${name}`);
    await execute("dpkg-deb", ["-x", path.join(work, archive), path.join(work, "root")]);
    renameSync(path.join(work, "root"), folder);
    rmSync(work, { recursive: true, force: true });
  });
  return folder;
}

async function download(name, folder) {
  try {
    await execute("apt-get", ["download", name], { cwd: folder });
  } catch {
    for (const part of ["lists/partial", "cache/archives/partial"]) {
      mkdirSync(local("apt", part), { recursive: true });
    }
    await execute("apt-get", [...privateLists, "update"]);
    await execute("apt-get", [...privateLists, "download", name], { cwd: folder });
  }
}
