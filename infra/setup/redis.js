import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { bringDebianPackage, onPath } from "./debian.js";
import { local } from "./paths.js";

/** The server is packed as the checker of its files, which it is by another name; `redis-server` has only the name. */
const programs = { "redis-server": "redis-check-rdb", "redis-cli": "redis-cli" };

/** What they are linked with, and a small machine lacks. */
const libraries = ["libjemalloc2", "libatomic1", "liblzf1"];

/** Brings a real Redis for the tests: its programs come to `.tidepool/redis/bin`, where they run as they stand. */
export async function bringRedis() {
  if (Object.keys(programs).every((name) => onPath(name))) return;
  const packages = [];
  for (const name of ["redis-tools", ...libraries]) {
    // One after the other: they share the lists of what there is.
    // oxlint-disable-next-line no-await-in-loop
    packages.push(await bringDebianPackage(name));
  }
  const bin = local("redis", "bin");
  mkdirSync(bin, { recursive: true });
  for (const [name, file] of Object.entries(programs)) {
    writeFileSync(path.join(bin, name), starter(packages, name, file), { mode: 0o755 });
  }
}

/** @returns {string} a script that becomes the program, called by its own name and with the libraries beside it */
function starter([tools, ...folders], name, file) {
  const found = folders.map((folder) => {
    const lib = path.join(folder, "usr", "lib");
    return path.join(lib, ...readdirSync(lib));
  });
  return [
    "#!/bin/bash",
    `export LD_LIBRARY_PATH="${found.join(":")}\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"`,
    `exec -a ${name} "${tools}/usr/bin/${file}" "$@"`,
    "",
  ].join("\n");
}
