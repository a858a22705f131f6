import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { python } from "../conformance/python.ts";
import { commandsOf } from "../helpers/shell-commands.ts";
import { startTidepool, type TidepoolProcess } from "../helpers/tidepool-process.ts";
import { askTriton, best, protocols } from "./triton-client.ts";

const root = path.resolve(import.meta.dirname, "../..");
const examples = "examples/python-models";
const run = promisify(execFile);

describe.each(["serve", "dev"] as const)("examples/python-models in tidepool %s", (command) => {
  let server: TidepoolProcess;
  beforeAll(async () => {
    server = await startTidepool([`--model-repository=${examples}`], command);
  });
  afterAll(() => server.stop());

  describe.concurrent.each(protocols)(
    "asked by tritonclient.%s",
    { timeout: 60_000 },
    (protocol) => {
      it("nlp_pipeline tells the sentiment of texts", async () => {
        const texts = [
          "What a wonderful day!",
          "The train was late, the seats were broken.",
          "Hello",
        ];
        const { sentiment } = await askTriton(server, protocol, "nlp_pipeline", {
          inputs: [{ name: "raw_text", datatype: "BYTES", shape: [3, 1], data: texts }],
          outputs: ["sentiment"],
        });
        expect(sentiment).toEqual({ shape: [3, 3], data: [0, 0.5, 2, 3, 0.5, 0, 0, 0.5, 0] });
      });

      it("tokenizer gives numbers of words, at most 128 of them", async () => {
        const long = "nice ".repeat(200);
        const { token_ids: ids } = await askTriton(server, protocol, "tokenizer", {
          inputs: [{ name: "text", datatype: "BYTES", shape: [2, 1], data: ["Bad, é LOVE", long] }],
          outputs: ["token_ids"],
        });
        expect(ids?.shape).toEqual([2, 128]);
        expect(ids?.data.slice(0, 5)).toEqual([9, 0, 1, 0, 0]);
        expect(new Set(ids?.data.slice(128))).toEqual(new Set([6]));
      });

      const classify = async (length: number, version?: string): Promise<unknown> => {
        // "love", twice "bad", and a number that is no word's.
        const ids = {
          name: "input_ids",
          datatype: "INT64",
          shape: [4, length],
          data: [1, 9, 9, 9999],
        };
        const request = { inputs: [ids], outputs: ["logits"], ...(version && { version }) };
        const { logits } = await askTriton(server, protocol, "text_classifier", request);
        expect(logits?.shape).toEqual([4, 3]);
        return logits?.data.slice(0, 3);
      };

      it("text_classifier takes texts of any length, and has two versions", async () => {
        expect(await classify(4)).toEqual([2, 0.5, 2]);
        expect(await classify(128, "2")).toEqual([64, 0.5, 64]);
        expect(await classify(128, "1")).toEqual([64, 0.5, 32]);
      });

      it("image_classifier gives a logit for each of 1000 classes", async () => {
        const image = { name: "input", datatype: "FP32", shape: [1, 3, 224, 224], data: [1] };
        const { output } = await askTriton(server, protocol, "image_classifier", {
          inputs: [image],
          outputs: ["output"],
        });
        expect(output?.shape).toEqual([1, 1000]);
        expect(best(output?.data ?? [])).toBe(999);
      });

      it.for([
        [1, 1],
        [3, 500],
        [480, 640],
      ])("image_pipeline names the colour of pictures of %i by %i", async ([height, width]) => {
        const shape = [2, height, width, 3];
        const { class_label: label } = await askTriton(server, protocol, "image_pipeline", {
          inputs: [{ name: "raw_image", datatype: "UINT8", shape, data: [250, 85, 5] }],
          outputs: ["class_label"],
        });
        expect(label).toEqual({ shape: [2, 1], data: ["#ff5500", "#ff5500"] });
      });
    },
  );

  it.each(commandsOf(`${examples}/README.md`).filter((one) => one.startsWith("curl ")))(
    "README.md shows a command that works: %s",
    async (shown) => {
      const here = shown.replace("localhost:8000", server.http);
      const { stdout } = await run("bash", ["-c", here]);
      expect(stdout).toMatch(
        shown.includes("nlp_pipeline") ? /"data":\[0\.0,0\.5,2\.0\]/u : /"data":\["#ff0000"\]/u,
      );
    },
  );
});

describe("examples/python-models/make_models.py", () => {
  it("makes the files of the folder again, byte for byte", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "tidepool-made-"));
    await run(python, [path.join(root, examples, "make_models.py"), folder]);
    const filesIn = (where: string): readonly string[] =>
      made.map((file) => readFileSync(path.join(where, file), "base64"));
    const all = readdirSync(folder, { recursive: true, encoding: "utf8" });
    const made = all.filter((one) => /\.\w+$/u.test(one));
    expect(made).toHaveLength(5);
    expect(filesIn(folder)).toEqual(filesIn(path.join(root, examples)));
    rmSync(folder, { recursive: true });
  });
});
