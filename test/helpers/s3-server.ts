import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  CompleteMultipartUploadCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { endProcess } from "./end-process.ts";
import { freePort } from "./free-port.ts";

const versions = path.resolve(import.meta.dirname, "../../.tidepool/versitygw/1.8.0");
const accessKey = "tests";
const secretKey = "tests-and-nothing-else";

/** What a client of it finds in its environment. */
export const s3Environment = {
  AWS_ACCESS_KEY_ID: accessKey,
  AWS_SECRET_ACCESS_KEY: secretKey,
  AWS_REGION: "us-east-1",
};

/** A real S3 server over a temporary directory, with one bucket. */
export interface S3Server {
  readonly endpoint: string;
  readonly bucket: string;
  readonly accessKey: string;
  readonly secretKey: string;
  /** Holds the buckets as folders. */
  readonly directory: string;
  put(key: string, content: string | Uint8Array): Promise<void>;
  /** Uploads in parts of so many bytes. */
  putInParts(key: string, content: Uint8Array, partBytes: number): Promise<void>;
  /** A model as {@link ModelDirectory} has it. */
  putModel(
    name: string,
    versions: Readonly<Record<number, string | Uint8Array>>,
    config?: string,
  ): Promise<void>;
  /** Deletes everything whose key begins so. */
  remove(prefix: string): Promise<void>;
  makeBucket(name: string): Promise<void>;
  stop(): Promise<void>;
}

/** Starts versitygw; resolves when it has made its bucket. @param flags of versitygw itself */
export async function startS3(bucket = "models", flags: readonly string[] = []): Promise<S3Server> {
  const folder = mkdtempSync(path.join(tmpdir(), "tidepool-s3-"));
  const directory = path.join(folder, "data");
  mkdirSync(directory);
  const address = `127.0.0.1:${await freePort()}`;
  const child = spawn(
    path.join(versions, "versitygw"),
    ["--port", address, "--keep-alive", "--quiet", ...flags, "posix", directory],
    {
      stdio: "ignore",
      env: { ...process.env, ROOT_ACCESS_KEY: accessKey, ROOT_SECRET_KEY: secretKey },
    },
  );
  const client = new S3Client({
    endpoint: `http://${address}`,
    region: "us-east-1",
    forcePathStyle: true,
    // It does not listen yet when the first request is sent.
    maxAttempts: 12,
    credentials: { accessKeyId: accessKey, secretAccessKey: secretKey },
  });
  const makeBucket = async (name: string): Promise<void> => {
    await client.send(new CreateBucketCommand({ Bucket: name }));
  };
  const server: S3Server = {
    endpoint: `http://${address}`,
    bucket,
    accessKey,
    secretKey,
    directory,
    makeBucket,
    async put(key, content) {
      const Body = Buffer.from(content);
      // Told explicitly, because the SDK warns of bodies that it takes to be endless when they are empty.
      const ContentLength = Body.length;
      await client.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body, ContentLength }));
    },
    async putInParts(key, content, partBytes) {
      await uploadParts(client, { Bucket: bucket, Key: key }, content, partBytes);
    },
    async putModel(name, models, config = "") {
      await server.put(`${name}/config.pbtxt`, `backend: "onnxruntime"\n${config}`);
      for (const [version, content] of Object.entries(models))
        await server.put(`${name}/${version}/model.onnx`, content);
    },
    async remove(prefix) {
      const list = new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix });
      for (;;) {
        const { Contents = [] } = await client.send(list);
        if (Contents.length === 0) return;
        for (const { Key } of Contents)
          await client.send(new DeleteObjectCommand({ Bucket: bucket, Key }));
      }
    },
    async stop() {
      client.destroy();
      await endProcess(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
  try {
    await makeBucket(bucket);
  } catch (error) {
    await server.stop();
    throw error;
  }
  return server;
}

async function uploadParts(
  client: S3Client,
  object: { readonly Bucket: string; readonly Key: string },
  content: Uint8Array,
  partBytes: number,
): Promise<void> {
  const { UploadId } = await client.send(new CreateMultipartUploadCommand(object));
  const parts: { PartNumber: number; ETag: string | undefined }[] = [];
  for (let start = 0; start < content.length; start += partBytes) {
    const PartNumber: number = parts.length + 1;
    const Body = content.subarray(start, start + partBytes);
    const { ETag } = await client.send(
      new UploadPartCommand({ ...object, UploadId, PartNumber, Body }),
    );
    parts.push({ ETag, PartNumber });
  }
  const MultipartUpload = { Parts: parts };
  await client.send(new CompleteMultipartUploadCommand({ ...object, UploadId, MultipartUpload }));
}
