import { promisify } from "node:util";
import { deflate, gunzip, gzip, inflate } from "node:zlib";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { tooLarge } from "./body.ts";

/** How a body is compressed, in the spelling of `Content-Encoding`. */
export type ContentCoding = "identity" | "gzip" | "deflate";

const compressors = { gzip: promisify(gzip), deflate: promisify(deflate) };
const decompressors = { gzip: promisify(gunzip), deflate: promisify(inflate) };

/** The codings a request may use, as the refusal of another one lists them. */
export const acceptedCodings = "gzip, deflate";

function isCoding(name: string): name is ContentCoding {
  return name === "identity" || name === "gzip" || name === "deflate";
}

/** The coding of a request's body. */
export function requestCoding(contentEncoding: string | undefined): ContentCoding {
  const name = contentEncoding?.trim().toLowerCase() ?? "identity";
  if (isCoding(name)) return name;
  throw new InferenceError(StatusCode.Unsupported, "Unsupported compression type");
}

/** The coding that a client likes best, by `q`; the first of equals. One it does not name is not chosen. */
export function responseCoding(acceptEncoding: string | undefined): ContentCoding {
  if (acceptEncoding === undefined) return "identity";
  let best: ContentCoding = "identity";
  let bestWeight = 0;
  for (const part of acceptEncoding.split(",")) {
    const [name = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
    const weight = qualityOf(parameters);
    if (isCoding(name) && weight > bestWeight) {
      best = name;
      bestWeight = weight;
    }
  }
  return best;
}

function qualityOf(parameters: readonly string[]): number {
  const given = parameters.find((parameter) => parameter.startsWith("q="));
  return given === undefined ? 1 : Number(given.slice(2));
}

/** Decompresses a body, off this thread; stops where it grows beyond the limit. */
export async function decompress(
  body: Buffer,
  coding: ContentCoding,
  limit: number,
): Promise<Buffer> {
  if (coding === "identity") return body;
  try {
    return await decompressors[coding](body, { maxOutputLength: limit });
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
    if (code === "ERR_BUFFER_TOO_LARGE") throw tooLarge(limit + 1, limit);
    throw new InferenceError(
      StatusCode.InvalidArg,
      `failed to decompress the request body: it is not valid ${coding} data`,
      { cause },
    );
  }
}

/** Compresses a body, off this thread. */
export function compress(body: Buffer, coding: "gzip" | "deflate"): Promise<Buffer> {
  return compressors[coding](body);
}
