import { createHash } from "node:crypto";
import { partCount, partRange, type PartPlace, type UploadFile } from "../../protocol/upload.ts";
import { uploadId, type UploadRecord } from "../../repository/uploads/upload-record.ts";
import type { UploadStore } from "../../repository/uploads/upload-store.ts";

/** Contents by name; those whose name begins with "/" are shared by all versions. */
export type Contents = Readonly<Record<string, string | Uint8Array>>;

/** What a client says of its files. */
export function manifest(contents: Contents): readonly UploadFile[] {
  return Object.entries(contents).map(([name, content]) => ({
    name: name.replace(/^\//u, ""),
    shared: name.startsWith("/"),
    bytes: Buffer.from(content).length,
    sha256: sha256(Buffer.from(content)),
  }));
}

/** The record of an upload that nobody has begun. */
export function uploadRecord(
  version: number,
  contents: Contents,
  more: Partial<UploadRecord> = {},
): UploadRecord {
  return {
    id: uploadId("m", version),
    model: "m",
    version,
    files: manifest(contents),
    partBytes: 5 * 2 ** 20,
    by: "tester",
    createdAt: 1_800_000_000_000,
    state: "uploading",
    touchedAt: 0,
    ...more,
  };
}

/** Sends one part as a client does, by whichever way the store wants. */
export async function sendPart(
  store: UploadStore,
  record: UploadRecord,
  { file, part }: PartPlace,
  content: string | Uint8Array,
): Promise<void> {
  const whole = Buffer.from(content);
  const [start, length] = partRange({ bytes: whole.length }, record.partBytes, part);
  const bytes = whole.subarray(start, start + length);
  if (store.transfer.kind === "direct") {
    const body = { bytes: pieces(bytes), sha256: sha256(bytes) };
    return store.transfer.write(record, { file, part }, body);
  }
  const [signed] = await store.transfer.sign(record, [{ file, part, sha256: sha256(bytes) }]);
  const { url = "", headers } = signed ?? {};
  const answer = await fetch(url, { method: "PUT", body: bytes, ...(headers && { headers }) });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
}

/** Sends all parts of all files. */
export async function sendAll(
  store: UploadStore,
  record: UploadRecord,
  contents: Contents,
): Promise<void> {
  for (const [file, content] of Object.values(contents).entries()) {
    const count = partCount({ bytes: Buffer.from(content).length }, record.partBytes);
    for (let part = 0; part < count; part++) await sendPart(store, record, { file, part }, content);
  }
}

export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

async function* pieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += 100_000)
    yield bytes.subarray(start, start + 100_000);
}
