import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Client, credentials, status, type ServiceError } from "@grpc/grpc-js";
import { loadSync } from "protobufjs";

const modelName = "ensemble_model";
const attempts = 6;
const firstPauseMilliseconds = 100;
const callMilliseconds = 60_000;

const proto = new URL("../../../protocol/proto/inference.proto", import.meta.url);
const messages = loadSync(fileURLToPath(proto));
const requestType = messages.lookupType("inference.ModelInferRequest");
const responseType = messages.lookupType("inference.ModelInferResponse");

/** Classifies files by the ensemble of a server over gRPC; while the server is not available it asks again, later and later. */
export class Ensemble {
  readonly #client: Client;

  /** @param address as in `127.0.0.1:8001` */
  constructor(address: string) {
    // Without this the connection itself would wait for a second, and all calls fail meanwhile.
    const reconnect = { "grpc.initial_reconnect_backoff_ms": firstPauseMilliseconds };
    this.#client = new Client(address, credentials.createInsecure(), reconnect);
  }

  /** The probabilities of the classes, for each file. */
  async classify(files: readonly ArrayBuffer[]): Promise<readonly (readonly number[])[]> {
    const request = Buffer.from(requestType.encode(inferRequest(files)).finish());
    for (let attempt = 1; ; attempt++) {
      try {
        return probabilitiesOf(await this.#infer(request), files.length);
      } catch (error) {
        if (attempt === attempts || !isUnavailable(error)) throw error;
        await pause(firstPauseMilliseconds * 2 ** (attempt - 1));
      }
    }
  }

  close(): void {
    this.#client.close();
  }

  #infer(request: Buffer): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    this.#client.makeUnaryRequest(
      "/inference.GRPCInferenceService/ModelInfer",
      (bytes: Buffer) => bytes,
      (bytes) => bytes,
      request,
      { deadline: Date.now() + callMilliseconds },
      (error: ServiceError | null, response?: Buffer) =>
        response ? resolve(response) : reject(error ?? new Error("no response")),
    );
    return promise;
  }
}

/** True when the server has understood the call and found its tensors wanting. */
export function isRefusal(error: unknown): boolean {
  return isServiceError(error) && error.code === status.INVALID_ARGUMENT;
}

/** What a caller may know of why a call failed. */
export function reasonOf(error: unknown): string {
  if (!isServiceError(error)) return "the server's answer could not be read";
  return isRefusal(error) ? error.details : `the server gave no answer: ${status[error.code]}`;
}

function isUnavailable(error: unknown): boolean {
  return isServiceError(error) && error.code === status.UNAVAILABLE;
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && "code" in error && "details" in error;
}

/** A tensor has rows of one length: zeros follow the shorter files, which pictures do not mind. */
function inferRequest(files: readonly ArrayBuffer[]): { [field: string]: unknown } {
  const longest = Math.max(...files.map(({ byteLength }) => byteLength));
  const rows = new Uint8Array(files.length * longest);
  for (const [i, file] of files.entries()) rows.set(new Uint8Array(file), i * longest);
  return {
    modelName,
    inputs: [{ name: "RAW_IMAGE", datatype: "UINT8", shape: [files.length, longest] }],
    outputs: [{ name: "output__0" }],
    rawInputContents: [rows],
  };
}

function probabilitiesOf(response: Buffer, rows: number): readonly (readonly number[])[] {
  const [raw] = responseType.toObject(responseType.decode(response))["rawOutputContents"];
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  const columns = raw.byteLength / 4 / rows;
  const row = (i: number): number[] =>
    Array.from({ length: columns }, (_, k) => view.getFloat32(4 * (i * columns + k), true));
  return Array.from({ length: rows }, (_, i) => row(i));
}
