import { InferenceError, invalidArgument, StatusCode } from "../../protocol/error.ts";
import type { ModelRepository } from "../../repository/model-repository.ts";
import type { UploadRecord } from "../../repository/uploads/upload-record.ts";
import type { StoredUpload, UploadStore } from "../../repository/uploads/upload-store.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { ServingEngine } from "../serving-engine.ts";
import type { PlacedUpload } from "./upload-places.ts";

export interface UploadCommitOptions {
  readonly repository: ModelRepository;
  readonly engine: Pick<ServingEngine, "activate" | "probe">;
  readonly log: Logger;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

const touchMilliseconds = 5000;
/** A server that has said nothing for so long is gone. */
const silentMilliseconds = 30_000;
const askAgainSeconds = 2;

/** True while some server opens or publishes the upload. */
export function isHeld({ state, touchedAt }: UploadRecord, now: number): boolean {
  return (state === "opening" || state === "publishing") && now - touchedAt < silentMilliseconds;
}

/**
 * Opens an upload's version, makes it visible and has it serve; resolves with why it does not serve, if it does not.
 * Rejects with the reason that it cannot be opened: then it was never visible, and is forgotten.
 */
export async function commitUpload(
  { place, stored }: PlacedUpload,
  options: UploadCommitOptions,
): Promise<string | undefined> {
  const { engine, repository } = options;
  if (stored.record.state !== "done") {
    const held = await Held.take(place, stored, options);
    const again = stored.record.state === "publishing";
    try {
      if (!again) {
        await opened(held, options);
        await held.become("publishing");
      }
      await place.publish(stored.record, again);
      await held.become("done");
    } catch (error) {
      await held.giveUp();
      throw error;
    } finally {
      held.end();
    }
    await place.remove(stored.record, "files");
  }
  try {
    await engine.activate(stored.record.model);
    return undefined;
  } catch (error) {
    return InferenceError.from(error).message;
  } finally {
    repository.tellChanged();
  }
}

async function opened(held: Held, { repository, engine }: UploadCommitOptions): Promise<void> {
  const { place, record } = held;
  await place.seal(record);
  try {
    const model = await repository.staged(place, record);
    await engine.probe(model).finally(() => model.release());
  } catch (cause) {
    const { code, message } = InferenceError.from(cause);
    // Nothing is wrong with the files: another try may go well.
    if (code === StatusCode.Unavailable) throw cause;
    held.refuse();
    const { model, version } = record;
    const text = `model '${model}', version ${version} cannot be served, and is not kept: ${message}`;
    throw invalidArgument(text, { cause });
  }
}

/** An upload that this server and no other works on. */
class Held {
  readonly place: UploadStore;
  readonly #options: UploadCommitOptions;
  readonly #timer: NodeJS.Timeout;
  #stored: StoredUpload;
  #refused = false;
  #writing: Promise<unknown> = Promise.resolve();

  private constructor(place: UploadStore, stored: StoredUpload, options: UploadCommitOptions) {
    this.place = place;
    this.#stored = stored;
    this.#options = options;
    this.#timer = setInterval(() => {
      this.become(this.record.state).catch((err: unknown) =>
        options.log.warn("an upload's record cannot be written", { err }),
      );
    }, touchMilliseconds);
  }

  /** Throws UNAVAILABLE while another server works on it. */
  static async take(
    place: UploadStore,
    stored: StoredUpload,
    options: UploadCommitOptions,
  ): Promise<Held> {
    const now = options.now();
    const state = stored.record.state === "publishing" ? "publishing" : "opening";
    const next = { ...stored.record, state, touchedAt: now } as const;
    const taken = isHeld(stored.record, now) ? undefined : await place.update(stored, next);
    if (taken) return new Held(place, taken, options);
    throw busy();
  }

  get record(): UploadRecord {
    return this.#stored.record;
  }

  /** Says that it is in that state now, and that this server lives. */
  become(state: UploadRecord["state"], touchedAt = this.#options.now()): Promise<void> {
    const done = this.#become(this.#writing, state, touchedAt);
    this.#writing = done.catch(() => {});
    return done;
  }

  /** It will not do: nothing is to be left of it. */
  refuse(): void {
    this.#refused = true;
  }

  /** It did not come to its end: somebody may try again at once, or take up where it was left. */
  async giveUp(): Promise<void> {
    this.end();
    await this.#writing;
    if (this.#refused) return this.place.remove(this.record, "all");
    const state = this.record.state === "publishing" ? "publishing" : "uploading";
    await this.become(state, 0).catch(() => {});
  }

  end(): void {
    clearInterval(this.#timer);
  }

  async #become(
    before: Promise<unknown>,
    state: UploadRecord["state"],
    touchedAt: number,
  ): Promise<void> {
    await before;
    const written = await this.place.update(this.#stored, { ...this.record, state, touchedAt });
    if (!written) throw busy();
    this.#stored = written;
  }
}

function busy(): InferenceError {
  return new InferenceError(
    StatusCode.Unavailable,
    "upload: another server works on it; ask again in a moment",
    { retryAfterSeconds: askAgainSeconds },
  );
}
