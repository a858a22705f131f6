import type { IncomingMessage, ServerResponse } from "node:http";
import { InferenceError, StatusCode } from "../../protocol/error.ts";

/** Reads a request's body, at most `limit` bytes of it. One that arrives in one piece is not copied. */
export function readBody(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  limit: number,
): Promise<Buffer> {
  const announced = Number(incoming.headers["content-length"] ?? NaN);
  if (announced > limit) return Promise.reject(tooLarge(announced, limit));
  if (incoming.headers.expect !== undefined) outgoing.writeContinue();
  return new Promise((resolve, reject) => {
    let body: Buffer = Buffer.alloc(0);
    let size = 0;
    const onData = (chunk: Buffer): void => {
      if (size + chunk.length > limit) {
        incoming.off("data", onData);
        reject(tooLarge(size + chunk.length, limit));
        return;
      }
      body = size === 0 ? chunk : append(body, size, chunk, announced);
      size += chunk.length;
    };
    incoming.on("data", onData);
    incoming.on("end", () => resolve(body.length === size ? body : body.subarray(0, size)));
    incoming.on("close", () => {
      // Making an error costs more than reading a small body, so it is made only where there is one.
      if (!incoming.readableEnded) reject(hungUp(incoming.errored));
    });
  });
}

/** The refusal of a body that is too large; a compressed one is measured after decompression, too. */
export function tooLarge(size: number, limit: number): InferenceError {
  return new InferenceError(
    StatusCode.InvalidArg,
    `request size of ${size} bytes exceeds the maximum allowed input size of ${limit} bytes. ` +
      "Use --http-max-input-size to increase the limit.",
  );
}

/** Adds a chunk in place where there is room: however small the chunks are, they cost no more than their bytes. */
function append(body: Buffer, size: number, chunk: Buffer, announced: number): Buffer {
  const needed = size + chunk.length;
  const grown = needed <= body.length ? body : Buffer.allocUnsafeSlow(capacity(needed, announced));
  if (grown !== body) body.copy(grown, 0, 0, size);
  chunk.copy(grown, size);
  return grown;
}

/** The announced size as soon as a good part of it has come: who announces much and sends little gets little memory. */
function capacity(needed: number, announced: number): number {
  return 8 * needed >= announced ? Math.max(needed, announced) : 2 * needed;
}

function hungUp(cause: unknown): InferenceError {
  return new InferenceError(StatusCode.Cancelled, "the request's body ended early", { cause });
}
