/** `node infra/setup/framework.js <name>`: a Python with the framework, for the tests of models that it runs. */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { command } from "./command.js";
import { bringDebianTree } from "./debian.js";
import { local } from "./paths.js";
import { execute, step } from "./progress.js";
import { installInto, makeEnvironment } from "./python.js";
import { unlessStamped } from "./stamp.js";

/** PyPI's PyTorch brings gigabytes of CUDA's libraries, Debian's none. */
const frameworks = {
  pytorch: { module: "torch", bring: (folder) => bringFromDebian("python3-torch", folder) },
  tensorflow: {
    module: "tensorflow",
    bring: (folder) => bringFromPypi("tensorflow-cpu==2.21.0", folder),
  },
  openvino: { module: "openvino", bring: (folder) => bringFromPypi("openvino==2026.4.1", folder) },
};

const [name = ""] = process.argv.slice(2);

await command(async () => {
  if (!Object.hasOwn(frameworks, name)) throw new Error(`no framework '${name}' is known`);
  await bringFramework(name);
  return 0;
});

/** The interpreter comes to `.tidepool/frameworks/<name>/bin/python`. */
function bringFramework(which) {
  const { module, bring } = frameworks[which];
  const folder = local("frameworks", which);
  return unlessStamped({
    stamp: path.join(folder, ".tidepool-stamp"),
    inputs: [import.meta.filename],
    work: () =>
      step(`bringing ${module}`, async () => {
        await bring(folder);
        // Compiled once here: the processes of models write no bytecode.
        const program = `import sys; sys.dont_write_bytecode = False; import ${module}`;
        await execute(path.join(folder, "bin", "python"), ["-c", program]);
      }),
  });
}

async function bringFromPypi(requirement, folder) {
  await makeEnvironment(folder);
  await installInto(folder, "--no-compile", requirement);
}

/** The machine's own Python, which sees the packages where they lie. */
async function bringFromDebian(packageName, folder) {
  const tree = await bringDebianTree(packageName);
  const libraries = ["usr/lib", "lib"]
    .map((lib) => path.join(tree, lib))
    .flatMap((lib) => [
      lib,
      ...withTriplet(lib).flatMap((found) => [found, `${found}/blas`, `${found}/lapack`]),
    ]);
  mkdirSync(path.join(folder, "bin"), { recursive: true });
  const starter = [
    "#!/bin/sh",
    exportPath("LD_LIBRARY_PATH", libraries),
    exportPath("PYTHONPATH", [path.join(tree, "usr/lib/python3/dist-packages")]),
    'exec /usr/bin/python3 "$@"',
    "",
  ];
  writeFileSync(path.join(folder, "bin", "python"), starter.join("\n"), { mode: 0o755 });
}

/** The folder for this kind of machine, as in `x86_64-linux-gnu`. */
function withTriplet(lib) {
  const found = readdirSync(lib).find((one) => one.includes("-linux-gnu"));
  return found === undefined ? [] : [path.join(lib, found)];
}

function exportPath(variable, folders) {
  return `export ${variable}="${folders.join(":")}\${${variable}:+:$${variable}}"`;
}
