import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { authenticator } from "../../../auth/authenticator.ts";
import { EdgeTrust, wordLifeMilliseconds } from "../../../auth/edge-trust.ts";
import { wordsInMemory } from "../../../auth/used-words.ts";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import {
  type NewUpload,
  type PartBody,
  type PartPlace,
  type PartToSign,
  type SignedPart,
  type Upload,
  UploadConflict,
  type Uploads,
} from "../../../protocol/upload.ts";
import { edgeSecret } from "../../helpers/edge-worker.ts";
import { signedCall } from "../../helpers/edge-words.ts";
import { type Answer, errorOf, type Headers } from "../../helpers/http-client.ts";
import { HttpStand } from "./http-stand.ts";

const id = "0123456789abcdef0123456789abcdef";
const digest = "ab".repeat(32);

/** Remembers what it was asked, and answers or fails as a test wants. */
class NotedUploads implements Uploads {
  readonly calls: unknown[] = [];
  failure: InferenceError | undefined;

  async begin(model: string, upload: NewUpload): Promise<Upload> {
    return this.#noted(["begin", model, upload], someUpload);
  }

  async find(model: string, wanted: string): Promise<Upload> {
    return this.#noted(["find", model, wanted], someUpload);
  }

  async writePart(model: string, wanted: string, at: PartPlace, body: PartBody): Promise<void> {
    let text = "";
    for await (const piece of body.bytes) text += Buffer.from(piece).toString();
    this.#noted(["write", model, wanted, at, text, body.sha256], undefined);
  }

  async signParts(
    model: string,
    wanted: string,
    parts: readonly PartToSign[],
  ): Promise<readonly SignedPart[]> {
    const url = "https://s3.example/x";
    const signed = parts.map(({ file, part }) => ({ file, part, url, headers: { a: "b" } }));
    return this.#noted(["sign", model, wanted, parts], signed);
  }

  async commit(model: string, wanted: string): Promise<Upload> {
    const done = { ...someUpload, state: "done", servingVersions: ["3"] } as const;
    return this.#noted(["commit", model, wanted], done);
  }

  async abort(model: string, wanted: string): Promise<void> {
    this.#noted(["abort", model, wanted], undefined);
  }

  #noted<T>(call: unknown, answer: T): T {
    this.calls.push(call);
    if (this.failure) throw this.failure;
    return answer;
  }
}

const file = { name: "model.onnx", bytes: 9, sha256: digest, shared: false };
const someUpload: Upload = {
  id,
  modelName: "m",
  version: 3,
  state: "uploading",
  files: [{ ...file, parts: [1] }],
  partBytes: 5,
  transfer: "direct",
  expiresAt: 0,
};

describe("uploads over HTTP", () => {
  let uploads: NotedUploads;
  let http: HttpStand;
  beforeEach(async () => {
    uploads = new NotedUploads();
    http = await HttpStand.start({}, {}, uploads);
  });
  afterEach(() => http.stop());

  const all = "/v2/repository/models/m/uploads";
  const one = `${all}/${id}`;

  function put(text: string, headers: Headers = {}): Promise<Answer> {
    return http.ask("PUT", `${one}/files/0/parts/1`, text, headers);
  }

  it("begin, with a version or without one", async () => {
    const { text, status } = await http.post(all, { version: 3, files: [file] });
    expect([status, JSON.parse(text)]).toEqual([
      200,
      {
        id,
        model_name: "m",
        version: "3",
        state: "uploading",
        transfer: "direct",
        part_bytes: 5,
        expires_at: "1970-01-01T00:00:00.000Z",
        files: [{ ...file, parts: [1] }],
      },
    ]);
    await http.post(all, { files: [{ ...file, shared: true }] });
    expect(uploads.calls).toMatchObject([
      ["begin", "m", { version: 3, files: [file], principal: { name: "anonymous" } }],
      ["begin", "m", { version: undefined, files: [{ ...file, shared: true }] }],
    ]);
  });

  it.each([
    ["{}", "files: given nothing, expected a list"],
    ['"x"', 'upload: given "x"'],
    ["[]", "upload: given []"],
    ['{"files": {}}', "files: given {}, expected a list"],
    ['{"version": "3", "files": []}', 'version: given "3", expected a whole number'],
    ['{"files": [1]}', "file: given 1"],
    ['{"files": [{"name": 1}]}', "name: given 1"],
    ['{"files": [{"name": "a", "bytes": -0.5}]}', "bytes: given -0.5"],
    ['{"files": [{"name": "a", "bytes": 1, "sha256": "x"}]}', 'sha256: given "x"'],
    ['{"files": [{"name": "a", "shared": 1}]}', "shared: given 1"],
  ])("refuse what is no list of files: %s", async (body, text) => {
    const answer = await http.post(all, body);
    expect(answer.status).toBe(400);
    expect(errorOf(answer)).toContain(text);
    expect(uploads.calls).toEqual([]);
  });

  it("take parts as a stream, with what the sender says of them", async () => {
    const sum = createHash("sha256").update("four").digest();
    const base64 = sum.toString("base64");
    for (const said of [`sha-256=:${base64}:`, `md5=:x:, sha-256=:${base64}:`])
      expect((await put("four", { "Content-Digest": said })).status).toBe(200);
    expect((await put("four", { Expect: "100-continue" })).status).toBe(200);
    const call = ["write", "m", id, { file: 0, part: 1 }, "four"];
    expect(uploads.calls).toEqual([
      [...call, sum.toString("hex")],
      [...call, sum.toString("hex")],
      [...call, undefined],
    ]);
    expect(errorOf(await put("x", { "Content-Digest": "sha-256=:short:" }))).toContain("expected");
    for (const place of ["files/x/parts/1", "files/0/parts/-1", "files/0/parts/1e9"])
      expect((await http.ask("PUT", `${one}/${place}`, "x")).status).toBe(400);
  });

  it("expect of a part by way of the edge what the edge has signed", async () => {
    await http.stop();
    const used = wordsInMemory(wordLifeMilliseconds);
    const edge = new EdgeTrust({ secrets: [edgeSecret], keys: undefined, used });
    const nobodys = authenticator({ keys: undefined, tokens: undefined });
    const access = { authenticator: nobodys, healthAnonymous: true, edge };
    http = await HttpStand.start({ access }, {}, uploads);
    const call = { method: "PUT", target: `${one}/files/0/parts/1`, body: "four" };
    const signed = signedCall({ ...call, claims: { scope: "models" } });
    expect((await put("five", signed)).status).toBe(200);
    const four = createHash("sha256").update("four").digest("hex");
    expect(uploads.calls).toEqual([["write", "m", id, { file: 0, part: 1 }, "five", four]]);
  });

  it("tell how far they are, sign parts, commit and abort", async () => {
    const parts = [{ file: 0, part: 1, sha256: digest }];
    const signed = await http.post(`${one}/parts`, { parts });
    expect(JSON.parse(signed.text)).toEqual({
      parts: [{ file: 0, part: 1, url: "https://s3.example/x", headers: { a: "b" } }],
    });
    expect(JSON.parse((await http.get(one)).text)).toMatchObject({ id, version: "3" });
    expect(JSON.parse((await http.post(`${one}/commit`)).text)).toMatchObject({
      state: "done",
      serving_versions: ["3"],
    });
    expect((await http.ask("DELETE", one)).status).toBe(200);
    expect(uploads.calls.map((call) => Array.isArray(call) && call[0])).toEqual([
      "sign",
      "find",
      "commit",
      "abort",
    ]);
    const many = Array.from({ length: 101 }, () => parts[0]);
    expect(errorOf(await http.post(`${one}/parts`, { parts: many }))).toContain("at most 100");
  });

  it("name the upload that has the version, by 409", async () => {
    uploads.failure = new UploadConflict("taken", id);
    const answer = await http.post(all, { files: [file] });
    expect([answer.status, JSON.parse(answer.text)]).toEqual([409, { error: "taken", upload: id }]);
    uploads.failure = new InferenceError(StatusCode.AlreadyExists, "in the repository");
    expect((await http.post(`${one}/commit`)).status).toBe(409);
    uploads.failure = new InferenceError(StatusCode.Unavailable, "busy", { retryAfterSeconds: 2 });
    const busy = await http.post(`${one}/commit`);
    expect([busy.status, busy.headers["retry-after"]]).toEqual([503, "2"]);
  });

  it("are refused where the server does not take them, but models can be activated", async () => {
    const closed = await HttpStand.start();
    const answer = await closed.post(all, { files: [file] });
    expect([answer.status, errorOf(answer)]).toEqual([
      501,
      "the server takes no uploads of models: expected --allow-uploads",
    ]);
    const activated = await closed.post("/v2/repository/models/batch/activate");
    expect(JSON.parse(activated.text)).toEqual({ model_name: "batch", serving_versions: ["1"] });
    expect(closed.engine.activated).toEqual(["batch"]);
    await closed.stop();
  });
});
