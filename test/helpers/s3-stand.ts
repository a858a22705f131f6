import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { ModelCache } from "../../repository/model-cache.ts";
import type { LocalVersion, StoredModel } from "../../repository/model-store.ts";
import { S3Bucket } from "../../repository/s3-bucket.ts";
import type { S3Patience } from "../../repository/s3-retry.ts";
import { S3Store } from "../../repository/s3-store.ts";
import { Slots } from "../../repository/slots.ts";
import { S3Proxy } from "./s3-proxy.ts";
import { s3Environment, startS3, type S3Server } from "./s3-server.ts";

/** Quick enough for tests, and patient enough for a busy machine. */
const shortPatience: S3Patience = {
  attempts: 4,
  firstPauseMilliseconds: 5,
  stallMilliseconds: 1000,
};

/** A store over a real S3 server, with a proxy between them and a cache of its own. */
export class S3Stand {
  readonly server: S3Server;
  readonly proxy: S3Proxy;
  readonly folder: string = mkdtempSync(path.join(tmpdir(), "tidepool-model-cache-"));
  readonly cache: ModelCache;
  readonly store: S3Store;

  private constructor(server: S3Server, proxy: S3Proxy) {
    this.server = server;
    this.proxy = proxy;
    this.cache = this.newCache();
    this.store = this.newStore({});
  }

  static async start(): Promise<S3Stand> {
    Object.assign(process.env, s3Environment);
    const server = await startS3();
    return new S3Stand(server, await S3Proxy.start(server.endpoint));
  }

  newCache(maxBytes = 2 ** 30): ModelCache {
    return new ModelCache(this.folder, maxBytes);
  }

  newStore(options: {
    readonly prefix?: string;
    readonly cache?: ModelCache;
    readonly configName?: string;
  }): S3Store {
    const { endpoint } = this.proxy;
    const { bucket } = this.server;
    const { prefix = "", cache = this.cache, ...rest } = options;
    const patience = shortPatience;
    const region = "us-east-1";
    return new S3Store({
      transfer: {
        bucket: new S3Bucket({ endpoint, bucket, region, pathStyle: true, patience }),
        slots: new Slots(4),
        patience,
      },
      prefix,
      place: `${bucket}/${prefix}`,
      cache,
      ...rest,
    });
  }

  async read(name: string): Promise<StoredModel> {
    const model = await this.store.read(name);
    if (!model) throw new Error(`no model '${name}'`);
    return model;
  }

  /** Reads and fetches the only version of a model. */
  async fetch(name: string, version = 1): Promise<LocalVersion> {
    return this.store.fetch(await this.read(name), version);
  }

  /** What lies in the cache: entries, and whatever else. */
  cached(): readonly string[] {
    return readdirSync(this.folder);
  }

  async stop(): Promise<void> {
    await this.proxy.stop();
    await this.server.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
