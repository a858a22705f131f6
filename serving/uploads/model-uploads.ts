import { InferenceError, invalidArgument, StatusCode } from "../../protocol/error.ts";
import {
  type NewUpload,
  type PartBody,
  partCount,
  type PartPlace,
  type PartToSign,
  type SignedPart,
  type Upload,
  UploadConflict,
  type Uploads,
} from "../../protocol/upload.ts";
import { checkModelName } from "../../repository/model-name.ts";
import { checkManifest } from "../../repository/uploads/check-manifest.ts";
import { fileOf, type UploadRecord } from "../../repository/uploads/upload-record.ts";
import type { StoredUpload, UploadStore } from "../../repository/uploads/upload-store.ts";
import { SerialTasks } from "../lifecycle/serial-tasks.ts";
import type { ServingEngine } from "../serving-engine.ts";
import { type BeginOptions, beginUpload } from "./begin-upload.ts";
import { commitUpload, isHeld, type UploadCommitOptions } from "./upload-commit.ts";
import { placedUpload, placeOf } from "./upload-places.ts";

export interface ModelUploadsOptions extends UploadCommitOptions, BeginOptions {
  readonly engine: Pick<ServingEngine, "activate" | "probe" | "servingVersions">;
  /** Of all files of one version. */
  readonly maxBytes: number;
}

const sweepMilliseconds = 60_000;

/**
 * Takes uploads into the repository that models are served from. What must be remembered lies there, too, so that an upload
 * goes on at any server, after any restart.
 */
export class ModelUploads implements Uploads {
  readonly #options: ModelUploadsOptions;
  readonly #places: readonly UploadStore[];
  /** Those that are being committed here; who asks again waits for the same. */
  readonly #commits = new Map<string, Promise<Upload>>();
  readonly #tasks = new SerialTasks();
  readonly #timer: NodeJS.Timeout;

  constructor(options: ModelUploadsOptions) {
    this.#options = options;
    this.#places = options.repository.uploads;
    this.#timer = setInterval(() => void this.sweep(), sweepMilliseconds);
    this.#timer.unref();
  }

  async begin(model: string, upload: NewUpload): Promise<Upload> {
    checkModelName(model);
    checkManifest(upload.files, this.#options);
    const place = await placeOf(this.#places, model);
    return this.#told(place, await beginUpload(place, model, upload, this.#options));
  }

  async find(model: string, id: string): Promise<Upload> {
    const { place, stored } = await placedUpload(this.#places, model, id);
    return this.#told(place, stored.record);
  }

  async writePart(model: string, id: string, at: PartPlace, body: PartBody): Promise<void> {
    const { place, stored } = await placedUpload(this.#places, model, id);
    checkOpen(stored);
    checkPart(stored.record, at);
    if (place.transfer.kind === "direct") return place.transfer.write(stored.record, at, body);
    throw unsupported("parts go to S3, by the URLs that …/parts signs");
  }

  async signParts(
    model: string,
    id: string,
    parts: readonly PartToSign[],
  ): Promise<readonly SignedPart[]> {
    const { place, stored } = await placedUpload(this.#places, model, id);
    checkOpen(stored);
    for (const part of parts) checkPart(stored.record, part);
    if (place.transfer.kind === "signed") return place.transfer.sign(stored.record, parts);
    throw unsupported("parts go to this server, by PUT");
  }

  commit(model: string, id: string): Promise<Upload> {
    const running = this.#commits.get(id);
    if (running) return running;
    const commit = this.#tasks
      .run(model, () => this.#commit(model, id))
      .finally(() => this.#commits.delete(id));
    this.#commits.set(id, commit);
    return commit;
  }

  async abort(model: string, id: string): Promise<void> {
    const { place, stored } = await placedUpload(this.#places, model, id);
    checkOpen(stored);
    await place.remove(stored.record, "all");
  }

  /** Forgets what is too old, and finishes what a server that is gone was about to make visible. */
  async sweep(): Promise<void> {
    for (const place of this.#places) {
      await this.#sweep(place).catch((err: unknown) =>
        this.#options.log.warn("uploads that were left could not be looked after", { err }),
      );
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #sweep(place: UploadStore): Promise<void> {
    const { now, keptMilliseconds } = this.#options;
    for (const { record } of await place.records()) {
      if (isHeld(record, now())) continue;
      if (record.state === "publishing") await this.commit(record.model, record.id);
      else if (now() - record.createdAt > keptMilliseconds) await place.remove(record, "all");
    }
    await place.tidy(now() - keptMilliseconds);
  }

  async #commit(model: string, id: string): Promise<Upload> {
    const placed = await placedUpload(this.#places, model, id);
    const reason = await commitUpload(placed, this.#options);
    const { record } = placed.stored;
    const upload = await this.#told(placed.place, { ...record, state: "done" });
    const serves = upload.servingVersions?.includes(String(upload.version)) === true;
    if (serves) return upload;
    const policy = "the version policy of the model's config does not choose it";
    return { ...upload, reason: reason ?? policy };
  }

  async #told(place: UploadStore, record: UploadRecord): Promise<Upload> {
    const { id, model, version, files, partBytes, createdAt, state } = record;
    const done = state === "done";
    const parts = done ? [] : await place.parts(record);
    return {
      id,
      modelName: model,
      version,
      state: state === "opening" || state === "publishing" ? "committing" : state,
      files: files.map((file, at) => ({ ...file, parts: parts[at] ?? [] })),
      partBytes,
      transfer: place.transfer.kind,
      expiresAt: createdAt + this.#options.keptMilliseconds,
      ...(done && { servingVersions: this.#options.engine.servingVersions(model) }),
    };
  }
}

function checkOpen({ record }: StoredUpload): void {
  if (record.state === "uploading") return;
  const how = record.state === "done" ? "is in the repository" : "is being committed";
  const text = `upload of model '${record.model}', version ${record.version}: it ${how}`;
  throw new UploadConflict(text, record.id);
}

function checkPart(record: UploadRecord, { file, part }: PartPlace): void {
  const count = partCount(fileOf(record, file), record.partBytes);
  if (part >= 0 && part < count) return;
  throw invalidArgument(`part: given ${part} of file ${file}, which has ${count} parts`);
}

function unsupported(text: string): InferenceError {
  return new InferenceError(StatusCode.Unsupported, text);
}
