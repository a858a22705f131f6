import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { python } from "../conformance/python.ts";
import { bringMilliseconds } from "../helpers/framework-models.ts";
import type { ModelDirectory } from "../helpers/model-directory.ts";
import { startTidepool, type TidepoolProcess } from "../helpers/tidepool-process.ts";
import { frameworkExample, writePictures } from "./framework-example.ts";
import { askTriton, best, type ClientOutput, protocols } from "./triton-client.ts";

/** The rows of an output of two dimensions. */
function rowsOf({ shape: [count = 0, length = 0], data }: ClientOutput): readonly number[][] {
  const row = (i: number): number[] => data.slice(i * length, (i + 1) * length).map(Number);
  return Array.from({ length: count }, (_, i) => row(i));
}

describe("examples/pytorch-models", () => {
  let models: ModelDirectory;
  let server: TidepoolProcess;
  const pictures = mkdtempSync(path.join(tmpdir(), "tidepool-pictures-"));
  beforeAll(async () => {
    models = await frameworkExample("pytorch", ["classifier", "text_embedder", "pytorch_model"]);
    server = await startTidepool([`--model-repository=${models.path}`, `--python=${python}`]);
  }, bringMilliseconds);
  afterAll(async () => {
    await server.stop();
    models.remove();
    rmSync(pictures, { recursive: true });
  });

  describe.each(protocols)("asked by tritonclient.%s", { timeout: 60_000 }, (protocol) => {
    const embed = async (ids: readonly number[], mask: readonly number[]): Promise<number[][]> => {
      const tensor = { datatype: "INT64", shape: [2, ids.length / 2] };
      const { embeddings } = await askTriton(server, protocol, "text_embedder", {
        inputs: [
          { name: "input_ids", ...tensor, data: ids },
          { name: "attention_mask", ...tensor, data: mask },
        ],
        outputs: ["embeddings"],
      });
      return embeddings ? [...rowsOf(embeddings)] : [];
    };

    it("ensemble_model gives probabilities of classes for the files of pictures", async () => {
      const files = await writePictures(pictures, 10);
      const { output__0: output } = await askTriton(server, protocol, "ensemble_model", {
        inputs: [{ name: "RAW_IMAGE", datatype: "UINT8", files }],
        outputs: ["output__0"],
      });
      const rows = output ? rowsOf(output) : [];
      expect(rows.map(best)).toEqual([0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
      for (const row of rows) expect(row.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 5);
    });

    it("text_embedder takes texts of any length, and hears nothing that its mask hides", async () => {
      const whole = await embed([11, 12, 21, 22], [1, 1, 1, 1]);
      const filled = await embed([11, 12, 500, 21, 22, 501], [1, 1, 0, 1, 1, 0]);
      expect(whole.map(({ length }) => length)).toEqual([768, 768]);
      expect(filled).toEqual(whole);
      expect(whole[0]).not.toEqual(whole[1]);
    });

    it("pytorch_model has tensors that are named by their place", async () => {
      const { OUTPUT__0: output } = await askTriton(server, protocol, "pytorch_model", {
        inputs: [{ name: "INPUT__0", datatype: "FP32", shape: [2, 10], data: [1, 2, 3] }],
        outputs: ["OUTPUT__0"],
      });
      expect(output).toEqual({ shape: [2, 1], data: [19, 20] });
    });
  });
});

describe("examples/tensorflow-models", () => {
  let models: ModelDirectory;
  let server: TidepoolProcess;
  beforeAll(async () => {
    models = await frameworkExample("tensorflow", ["image_classifier"]);
    server = await startTidepool([`--model-repository=${models.path}`]);
  }, bringMilliseconds);
  afterAll(async () => {
    await server.stop();
    models.remove();
  });

  it.concurrent.each(protocols)(
    "image_classifier answers tritonclient.%s from a SavedModel",
    async (protocol) => {
      const shape = [2, 224, 224, 3];
      const { predictions } = await askTriton(server, protocol, "image_classifier", {
        inputs: [{ name: "input_image", datatype: "FP32", shape, data: [1, 0, 0] }],
        outputs: ["predictions"],
      });
      expect(predictions && rowsOf(predictions).map(best)).toEqual([900, 900]);
    },
    60_000,
  );
});
