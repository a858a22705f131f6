import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** A model repository in a temporary directory, for a test to write models into. */
export class ModelDirectory {
  readonly path: string = mkdtempSync(join(tmpdir(), "tidepool-models-"));

  /** Writes one file below the directory, with the folders above it. */
  write(path: string, content: string | Uint8Array): void {
    const target = join(this.path, path);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, content);
  }

  /** A model whose version folders each hold a `model.onnx` with the given content. */
  model(name: string, versions: Readonly<Record<number, string | Uint8Array>>, config = ""): void {
    mkdirSync(join(this.path, name), { recursive: true });
    this.write(`${name}/config.pbtxt`, `backend: "onnxruntime"\n${config}`);
    for (const [version, content] of Object.entries(versions))
      this.write(`${name}/${version}/model.onnx`, content);
  }

  remove(path = ""): void {
    rmSync(join(this.path, path), { recursive: true, force: true });
  }
}
