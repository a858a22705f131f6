import { spawn, execFile, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FileResult } from "../../examples/clients/predict/classify-files.ts";
import { python } from "../conformance/python.ts";
import { endProcess } from "../helpers/end-process.ts";
import { bringMilliseconds } from "../helpers/framework-models.ts";
import type { ModelDirectory } from "../helpers/model-directory.ts";
import { commandsOf } from "../helpers/shell-commands.ts";
import { startTidepool, type TidepoolProcess } from "../helpers/tidepool-process.ts";
import { frameworkExample, writePictures } from "./framework-example.ts";

const root = path.resolve(import.meta.dirname, "../..");
const clients = path.join(root, "examples/clients/predict");
const run = promisify(execFile);
const pictures = mkdtempSync(path.join(tmpdir(), "tidepool-pictures-"));
let models: ModelDirectory;
let server: TidepoolProcess;
let app: ChildProcess;
let url: string;

beforeAll(async () => {
  models = await frameworkExample("pytorch", ["classifier", "text_embedder", "pytorch_model"]);
  server = await startTidepool([`--model-repository=${models.path}`, `--python=${python}`]);
  app = spawn(process.execPath, [path.join(clients, "server.ts"), "0", server.grpc], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (!app.stdout) throw new Error("no output");
  [url] = await once(createInterface(app.stdout), "line");
}, bringMilliseconds);

afterAll(async () => {
  await endProcess(app);
  await server.stop();
  models.remove();
  rmSync(pictures, { recursive: true });
});

/** What the Python client prints, a line each. */
async function predictPy(files: readonly string[]): Promise<readonly string[]> {
  const there = url.replace("127.0.0.1", "localhost");
  const env = { ...process.env, PREDICT_URL: there };
  const { stdout } = await run(python, [path.join(clients, "predict.py"), ...files], { env });
  return stdout.trimEnd().split("\n");
}

describe("examples/clients/predict", { timeout: 120_000 }, () => {
  it("classifies one picture for a Python client", async () => {
    const files = await writePictures(pictures, 1);
    expect(await predictPy(files)).toEqual(["0000.png 0"]);
  });

  it("classifies 37 pictures in their order, and tells which one is broken", async () => {
    const files = await writePictures(pictures, 37);
    writeFileSync(files[20] ?? "", "this is no picture");
    const lines = await predictPy(files);
    expect(lines).toHaveLength(37);
    expect(lines[20]).toMatch(/^0020\.png .*not a picture: of no kind that Pillow knows/u);
    const classes = files.map((file, i) => `${path.basename(file)} ${i % 5}`);
    expect(lines.toSpliced(20, 1)).toEqual(classes.toSpliced(20, 1));
  });

  it.each(commandsOf("examples/clients/predict/README.md").slice(1))(
    "README.md shows a command that works: %s",
    async (command) => {
      const [red = ""] = await writePictures(pictures, 1);
      renameSync(red, path.join(pictures, "red.png"));
      writeFileSync(path.join(pictures, "notes.txt"), "this is no picture");
      const here = command
        .replace("localhost:8080/predict", url)
        .replace(/^python3 (?<client>\S+)/u, `${python} ${root}/$<client>`);
      const env = { ...process.env, PREDICT_URL: url };
      const { stdout } = await run("bash", ["-c", here], { cwd: pictures, env });
      expect(stdout).toMatch(/red\.png.*\b0\b.*notes\.txt.*of no kind that Pillow knows/su);
    },
  );

  it("classifies 1000 pictures", async () => {
    const files = await writePictures(pictures, 1000);
    const form = new FormData();
    for (const file of files)
      form.append("files", new Blob([readFileSync(file)]), path.basename(file));
    const response = await fetch(url, { method: "POST", body: form });
    const { results } = JSON.parse(await response.text());
    expect(results.map((result: FileResult) => "class" in result && result.class)).toEqual(
      files.map((_, i) => i % 5),
    );
    expect(results.map(({ filename }: FileResult) => filename)).toEqual(
      files.map((file) => path.basename(file)),
    );
  });
});
