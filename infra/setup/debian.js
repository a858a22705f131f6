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
    await download([name], work);
    const archive = readdirSync(work).find((file) => file.endsWith(".deb"));
    if (archive === undefined) throw new Error(`apt-get brought no archive of ${name}`);
    await execute("dpkg-deb", ["-x", path.join(work, archive), path.join(work, "root")]);
    renameSync(path.join(work, "root"), folder);
    rmSync(work, { recursive: true, force: true });
  });
  return folder;
}

/**
 * Unpacks a Debian package together with all that it depends on and this machine lacks, without installing anything.
 *
 * @param {string} name of the package
 * @returns {Promise<string>} the folder that stands for `/`
 */
export async function bringDebianTree(name) {
  const folder = local("debian-trees", name);
  if (existsSync(folder)) return folder;
  await step(`bringing the Debian package ${name} and what it depends on`, async () => {
    const work = local("debian-trees", `.${name}`);
    rmSync(work, { recursive: true, force: true });
    mkdirSync(path.join(work, "root"), { recursive: true });
    const lacking = await lackingPackages(name);
    if (lacking.length > 0) await download(lacking, work);
    for (const file of readdirSync(work).filter((one) => one.endsWith(".deb"))) {
      // One after the other: they write into the same folders.
      // oxlint-disable-next-line no-await-in-loop
      await execute("dpkg-deb", ["-x", path.join(work, file), path.join(work, "root")]);
    }
    renameSync(path.join(work, "root"), folder);
    rmSync(work, { recursive: true, force: true });
  });
  return folder;
}

/** @returns {Promise<string[]>} the packages that an installation would bring */
async function lackingPackages(name) {
  const install = ["install", "--print-uris", "--no-install-recommends", "-qq", name];
  let uris;
  try {
    uris = await execute("apt-get", install);
  } catch {
    await updatePrivateLists();
    uris = await execute("apt-get", [...privateLists, ...install]);
  }
  return [...uris.matchAll(/ (\S+?)_\S+\.deb /gu)].map(([, found]) => found);
}

/** @param {string[]} names @param {string} folder where the archives come to */
async function download(names, folder) {
  try {
    await execute("apt-get", ["download", ...names], { cwd: folder });
  } catch {
    await updatePrivateLists();
    await execute("apt-get", [...privateLists, "download", ...names], { cwd: folder });
  }
}

async function updatePrivateLists() {
  for (const part of ["lists/partial", "cache/archives/partial"]) {
    mkdirSync(local("apt", part), { recursive: true });
  }
  await execute("apt-get", [...privateLists, "update"]);
}
