import { isJsonObject } from "../../protocol/json-access.ts";

/** An object that has come into a bucket. */
export interface Arrival {
  readonly bucket: string;
  readonly key: string;
  /** As the S3 server writes it: texts of one form are in the order of times. */
  readonly time: string;
  /** Hexadecimal; orders events of one key and one time. */
  readonly sequencer: string;
}

/** Where models lie. */
export interface ModelPlace {
  readonly bucket: string;
  /** What the keys of all models begin with: "" or a text that ends in "/". */
  readonly prefix: string;
}

const maxRecords = 1000;
const maxKeyLength = 1024;

/**
 * The objects that an event of an S3 server says have come: `{"Records": [...]}`, as Amazon's S3 hands it to a function and
 * other servers post it. What is no such event, a test event among them, tells of none. Throws for more than one should have.
 */
export function arrivalsIn(event: unknown): readonly Arrival[] {
  const records = isJsonObject(event) ? event["Records"] : undefined;
  if (!Array.isArray(records)) return [];
  if (records.length > maxRecords)
    throw new Error(`event: given ${records.length} records, expected at most ${maxRecords}`);
  return records.flatMap(arrivalIn);
}

/**
 * The model that an object belongs to; undefined for one that is part of none. Names that begin with a dot are no model's:
 * uploads lie there that are not finished.
 */
export function modelOf({ bucket, key }: Arrival, place: ModelPlace): string | undefined {
  if (bucket !== place.bucket || !key.startsWith(place.prefix)) return undefined;
  const [model = "", ...below] = key.slice(place.prefix.length).split("/");
  const hidden = [model, ...below].some((segment) => segment.startsWith("."));
  return hidden || model === "" || below.length === 0 ? undefined : model;
}

/** True unless the one is known to be no later than the other. */
export function isLater(one: Arrival, other: Arrival): boolean {
  if (one.time !== other.time) return one.time > other.time;
  const length = Math.max(one.sequencer.length, other.sequencer.length);
  return one.sequencer.padStart(length, "0") > other.sequencer.padStart(length, "0");
}

function arrivalIn(record: unknown): readonly Arrival[] {
  if (!isJsonObject(record) || !isJsonObject(record["s3"])) return [];
  const { eventName, eventTime } = record;
  const { bucket, object } = record["s3"];
  if (!isJsonObject(bucket) || !isJsonObject(object)) return [];
  const { name } = bucket;
  const { key, sequencer = "" } = object;
  if (typeof eventName !== "string" || typeof name !== "string" || typeof key !== "string")
    return [];
  if (!/^(?:s3:)?ObjectCreated:/u.test(eventName) || key.length > maxKeyLength) return [];
  const arrival = { time: String(eventTime), sequencer: String(sequencer) };
  return [{ ...arrival, bucket: name, key: decodedKey(key) }];
}

/** Amazon's S3 writes keys as forms do; other servers write them as they are, which shows where a form could not. */
function decodedKey(key: string): string {
  if (!/^[\w.!*'()~%+/-]*$/u.test(key)) return key;
  try {
    return decodeURIComponent(key.replaceAll("+", " "));
  } catch {
    return key;
  }
}
