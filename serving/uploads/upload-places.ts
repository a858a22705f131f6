import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { isUploadId } from "../../repository/uploads/upload-record.ts";
import type { StoredUpload, UploadStore } from "../../repository/uploads/upload-store.ts";

/** An upload, and the place that keeps it. */
export interface PlacedUpload {
  readonly place: UploadStore;
  readonly stored: StoredUpload;
}

/** The place that a model is uploaded to: where it is, or the first one. Throws where there is none. */
export async function placeOf(places: readonly UploadStore[], model: string): Promise<UploadStore> {
  for (const place of places) if (await place.store.read(model)) return place;
  const [first] = places;
  if (first) return first;
  throw new InferenceError(StatusCode.Unsupported, "no model repository takes uploads");
}

/** The upload of that id; throws NOT_FOUND when there is none, or it is another model's. */
export async function placedUpload(
  places: readonly UploadStore[],
  model: string,
  id: string,
): Promise<PlacedUpload> {
  for (const place of isUploadId(id) ? places : []) {
    const stored = await place.find(id);
    if (stored?.record.model === model) return { place, stored };
  }
  const shown = id.length > 64 ? `${id.slice(0, 64)}…` : id;
  throw new InferenceError(
    StatusCode.NotFound,
    `upload '${shown}' of model '${model}' is not found`,
  );
}
