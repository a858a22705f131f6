import type { IncomingMessage, ServerResponse } from "node:http";
import { decodeJson, readJson } from "../../protocol/json-text.ts";
import type { JsonDocument } from "../../protocol/json-text.ts";
import { readBody } from "./body.ts";

/** Reads a small request that is JSON and nothing else. `use` may be called twice: see `readJson`. */
export async function readJsonBody<T>(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  limit: number,
  use: (document: JsonDocument) => T,
): Promise<T> {
  return readJson(decodeJson(await readBody(incoming, outgoing, limit)), use);
}
