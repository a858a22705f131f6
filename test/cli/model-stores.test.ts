import { describe, expect, it } from "vitest";
import { openModelStores } from "../../cli/model-stores.ts";
import { readSettings } from "../../cli/settings.ts";
import { LocalStore } from "../../repository/local-store.ts";
import { S3Store } from "../../repository/s3-store.ts";

async function open(...args: string[]): Promise<readonly unknown[]> {
  const { uploads } = await openModelStores(readSettings(args, {}).settings, {});
  return uploads.map(({ store }) => store);
}

describe("openModelStores", () => {
  it("opens folders and places in S3, in their order, without a word to S3", async () => {
    const [first, second] = await open(
      "--model-repository=s3://127.0.0.1:1/bucket/prefix",
      `--model-repository=${import.meta.dirname}`,
    );
    expect(first).toBeInstanceOf(S3Store);
    expect(second).toBeInstanceOf(LocalStore);
  });

  it("refuses what is neither a folder nor a place in S3", async () => {
    await expect(open("--model-repository=/no/such/folder")).rejects.toThrow(
      "--model-repository: given /no/such/folder, which cannot be read as a folder",
    );
    await expect(open("--model-repository=s3://host:99999/bucket")).rejects.toThrow(
      "--model-repository: given s3://host:99999/bucket, expected s3://",
    );
  });

  it("refuses an endpoint without a scheme", async () => {
    await expect(open("--model-repository=s3://bucket", "--s3-endpoint=host:9000")).rejects.toThrow(
      "--s3-endpoint: given host:9000, expected http:// or https://",
    );
  });
});
