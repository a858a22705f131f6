import type { IncomingMessage, ServerResponse } from "node:http";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { GatheredBytes } from "../gathered-bytes.ts";
import { wrongBody } from "./edge-call.ts";

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
    const body = new GatheredBytes();
    const onData = (chunk: Buffer): void => {
      const size = body.size + chunk.length;
      if (size <= limit) {
        body.add(chunk, announced);
        return;
      }
      incoming.off("data", onData);
      reject(tooLarge(size, limit));
    };
    incoming.on("data", onData);
    incoming.on("end", () => {
      const { bytes } = body;
      const wrong = wrongBody(incoming, bytes);
      if (wrong) reject(wrong);
      else resolve(bytes);
    });
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

function hungUp(cause: unknown): InferenceError {
  return new InferenceError(StatusCode.Cancelled, "the request's body ended early", { cause });
}
