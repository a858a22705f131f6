import { ListMultipartUploadsCommand, ListObjectsV2Command, S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { S3Bucket } from "../../../repository/s3-bucket.ts";
import { S3Store } from "../../../repository/s3-store.ts";
import { S3Writer } from "../../../repository/s3-writer.ts";
import { Slots } from "../../../repository/slots.ts";
import { S3Uploads } from "../../../repository/uploads/s3-uploads.ts";
import { S3Stand } from "../../helpers/s3-stand.ts";
import { sendAll, sha256, uploadRecord } from "../../helpers/upload-parts.ts";
import { describeUploadStore } from "./upload-store-cases.ts";

let s3: S3Stand;
let client: S3Client;
beforeAll(async () => {
  s3 = await S3Stand.start();
  const { endpoint, accessKey: accessKeyId, secretKey: secretAccessKey } = s3.server;
  const credentials = { accessKeyId, secretAccessKey };
  client = new S3Client({ endpoint, region: "us-east-1", forcePathStyle: true, credentials });
});
afterAll(async () => {
  client.destroy();
  await s3.stop();
});

let prefixes = 0;

/** Uploads below a prefix of their own, to a server that copies no more than a few bytes at once. */
function openUploads(prefix: string): S3Uploads {
  const { endpoint, bucket } = s3.server;
  const patience = { attempts: 4, firstPauseMilliseconds: 5, stallMilliseconds: 5000 };
  const options = { endpoint, bucket, region: "us-east-1", pathStyle: true, patience };
  const transfer = { bucket: new S3Bucket(options), slots: new Slots(4), patience };
  const store = new S3Store({ transfer, prefix, place: prefix, cache: s3.cache });
  const writer = new S3Writer(options, { copyPartBytes: 6 * 2 ** 20 });
  return new S3Uploads({ store, transfer, prefix, writer, settleMilliseconds: 50 });
}

async function keys(Prefix: string): Promise<readonly string[]> {
  const Bucket = s3.server.bucket;
  const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket, Prefix }));
  const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket, Prefix }));
  return [...Contents, ...Uploads].map(({ Key = "" }) => Key.slice(Prefix.length));
}

describeUploadStore("S3Uploads", () => {
  const prefix = `p${prefixes++}/`;
  return Promise.resolve({
    uploads: openUploads(prefix),
    put: (path: string, content: string) => s3.server.put(prefix + path, content),
    reader: () => s3.newStore({ prefix }),
    leftovers: () => keys(prefix),
    stop: () => s3.server.remove(prefix),
  });
});

describe("S3Uploads to a bucket", () => {
  it("signs URLs for exactly the bytes that were announced", async () => {
    const uploads = openUploads("signed/");
    const content = Buffer.alloc(6 * 2 ** 20, "a");
    const record = uploadRecord(1, { big: content, small: "small" });
    await uploads.create(record);
    const stored = (await uploads.find(record.id))?.record ?? record;
    const part = content.subarray(0, record.partBytes);
    const signed = await uploads.transfer.sign(stored, [
      { file: 0, part: 0, sha256: sha256(part) },
      // Of a file that is one part the manifest says it.
      { file: 1, part: 0, sha256: sha256(Buffer.from("other")) },
    ]);
    const bodies = [part, Buffer.from("small")];
    for (const [at, { url, headers }] of signed.entries()) {
      const body = bodies[at] ?? Buffer.alloc(0);
      const forged = Buffer.from(body);
      forged[0] = 0;
      // A refusal may come, and the connection end, while the body is still on its way.
      const put = (bytes: Buffer<ArrayBuffer>, more = {}): Promise<boolean> =>
        fetch(url, { method: "PUT", body: bytes, headers: { ...headers, ...more } }).then(
          ({ ok }) => ok,
          () => false,
        );
      expect(await put(forged)).toBe(false);
      const shorter = body.subarray(1);
      const sum = Buffer.from(sha256(shorter), "hex").toString("base64");
      const said = { "content-length": String(shorter.length), "x-amz-checksum-sha256": sum };
      expect(await put(Buffer.from(shorter), said)).toBe(false);
      expect(await put(Buffer.from(body))).toBe(true);
    }
    await uploads.remove(stored, "all");
    expect(await keys("signed/")).toEqual([]);
  });

  it("goes on with copies that were interrupted, while nobody sees half of them", async () => {
    const uploads = openUploads("broken/");
    const contents = { "/config.pbtxt": "new", a: "a", b: "b" };
    const record = uploadRecord(1, contents);
    await uploads.create(record);
    await sendAll(uploads, record, contents);
    await uploads.seal(record);
    // As it is left by a process that dies between two copies.
    await s3.server.put("broken/.tidepool-uploads/new/m", record.id);
    await s3.server.put("broken/m/.tidepool-hidden-1", record.id);
    await s3.server.put("broken/m/1/a", "a");
    const reader = s3.newStore({ prefix: "broken/" });
    expect([await reader.list(), await reader.read("m")]).toEqual([[], undefined]);
    await uploads.publish(record, true);
    expect(await reader.list()).toEqual(["m"]);
    expect((await reader.read("m"))?.versions[0]?.files).toEqual(["a", "b"]);
    expect(await keys("broken/m/")).toEqual(["1/a", "1/b", "config.pbtxt"]);
  });
});
