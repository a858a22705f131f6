import { createHash } from "node:crypto";
import type { Upload, UploadFile } from "../../protocol/upload.ts";
import { type HttpCall, httpCall } from "./http-call.ts";
import { type PersistentOptions, persistently } from "./persistent.ts";

/** An upload as the server tells of it. */
export interface RemoteUpload {
  readonly id: string;
  readonly version: string;
  readonly state: Upload["state"];
  readonly transfer: Upload["transfer"];
  readonly part_bytes: number;
  readonly files: Upload["files"];
  readonly serving_versions?: readonly string[];
  readonly reason?: string;
}

export interface UploadClientOptions {
  /** As in `http://127.0.0.1:8000`. */
  readonly url: string;
  readonly key: string | undefined;
  /** What the server wants besides; S3 never gets them. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly model: string;
  readonly onRetry: PersistentOptions["onRetry"];
}

/** A part that is sent. */
export interface SentPart {
  readonly file: number;
  readonly part: number;
  readonly bytes: Buffer;
  readonly onSent: (bytes: number) => void;
}

const attempts = 8;
/** While another server works on it, or the models' processes start. */
const commitAttempts = 60;
/** The server waits longer for a pool worker, and asking it again would only begin that anew. */
const commitBusyMilliseconds = 290_000;

/** A server's uploads of one model, as a client sees them. What was interrupted is tried again. */
export class UploadClient {
  readonly #options: UploadClientOptions;
  readonly #uploads: string;

  constructor(options: UploadClientOptions) {
    this.#options = options;
    const base = options.url.replace(/\/+$/u, "");
    this.#uploads = `${base}/v2/repository/models/${encodeURIComponent(options.model)}/uploads`;
  }

  async begin(files: readonly UploadFile[], version: number | undefined): Promise<RemoteUpload> {
    const body = { files, ...(version !== undefined && { version }) };
    return JSON.parse(await this.#ask("POST", "", body));
  }

  async abort(id: string): Promise<void> {
    await this.#ask("DELETE", `/${id}`);
  }

  async commit(id: string): Promise<RemoteUpload> {
    const call = this.#call("POST", `/${id}/commit`);
    const { text } = await persistently(() => httpCall(call, true), {
      attempts: commitAttempts,
      busyMilliseconds: commitBusyMilliseconds,
      onRetry: this.#options.onRetry,
    });
    return JSON.parse(text);
  }

  /** Resolves when the server, or S3, has it. */
  async send({ id, transfer }: RemoteUpload, sent: SentPart): Promise<void> {
    const { file, part, bytes } = sent;
    const digest = createHash("sha256").update(bytes).digest();
    await this.#persistently(async () => {
      let gone = 0;
      const onSent = (count: number): void => {
        gone += count;
        sent.onSent(count);
      };
      const call =
        transfer === "direct"
          ? this.#directPart(`/${id}/files/${file}/parts/${part}`, digest)
          : await this.#signedPart(id, { file, part, sha256: digest.toString("hex") });
      try {
        await httpCall({ ...call, body: bytes, onSent });
      } catch (error) {
        sent.onSent(-gone);
        throw error;
      }
    });
  }

  #directPart(place: string, digest: Buffer): HttpCall {
    const said = { "content-digest": `sha-256=:${digest.toString("base64")}:` };
    return { method: "PUT", url: this.#uploads + place, headers: { ...this.#headers(), ...said } };
  }

  /** Asked for anew at each try, because what is signed is good for some time only. */
  async #signedPart(id: string, part: object): Promise<HttpCall> {
    const { text } = await httpCall(this.#call("POST", `/${id}/parts`, { parts: [part] }));
    const [signed] = JSON.parse(text).parts;
    return { method: "PUT", url: signed.url, headers: signed.headers };
  }

  async #ask(method: string, place: string, json?: object): Promise<string> {
    const call = this.#call(method, place, json);
    return (await this.#persistently(() => httpCall(call))).text;
  }

  #call(method: string, place: string, json?: object): HttpCall {
    const url = this.#uploads + place;
    if (!json) return { method, url, headers: this.#headers() };
    const headers = { ...this.#headers(), "content-type": "application/json" };
    return { method, url, headers, body: Buffer.from(JSON.stringify(json)) };
  }

  #headers(): Readonly<Record<string, string>> {
    const { key, headers } = this.#options;
    return key === undefined ? { ...headers } : { ...headers, authorization: `Bearer ${key}` };
  }

  #persistently<T>(attempt: () => Promise<T>): Promise<T> {
    return persistently(attempt, { attempts, onRetry: this.#options.onRetry });
  }
}
