import { InferenceError, StatusCode } from "../protocol/error.ts";
import { isJsonObject, type JsonObject, member } from "../protocol/json-access.ts";

export interface KvNamespaceOptions {
  /** Of Cloudflare's API. */
  readonly endpoint: string;
  readonly accountId: string;
  readonly namespaceId: string;
  readonly token: string;
}

/** Names and texts in a namespace of Workers KV. Every method rejects with UNAVAILABLE when it could not be done. */
export interface KvNamespace {
  /** At most 10,000 at once. */
  put(texts: ReadonlyMap<string, string>): Promise<void>;
  remove(names: readonly string[]): Promise<void>;
  list(prefix: string): Promise<readonly string[]>;
}

const patienceMilliseconds = 30_000;
/** Of names, which come a thousand at a time. */
const mostPages = 100;

/** Opens a namespace of Workers KV by Cloudflare's REST API. */
export function kvNamespace(options: KvNamespaceOptions): KvNamespace {
  const { endpoint, accountId, namespaceId } = options;
  const base = `${endpoint}/accounts/${accountId}/storage/kv/namespaces/${namespaceId}`;
  return {
    async put(texts) {
      const pairs = Array.from(texts, ([key, value]) => ({ key, value }));
      if (pairs.length > 0) await ask(options, "PUT", `${base}/bulk`, pairs);
    },
    async remove(names) {
      if (names.length > 0) await ask(options, "POST", `${base}/bulk/delete`, names);
    },
    async list(prefix) {
      const names: string[] = [];
      let cursor = "";
      for (let page = 0; page < mostPages; page++) {
        const query = new URLSearchParams({ prefix, ...(cursor !== "" && { cursor }) });
        // Each page says where the next one begins.
        // oxlint-disable-next-line no-await-in-loop
        const answer = await ask(options, "GET", `${base}/keys?${query.toString()}`);
        names.push(...namesIn(answer["result"]));
        const next = member(answer["result_info"], "cursor");
        if (typeof next !== "string" || next === "") return names;
        cursor = next;
      }
      throw failed(`given more than ${mostPages} pages of names, expected fewer`);
    },
  };
}

async function ask(
  { token }: KvNamespaceOptions,
  method: string,
  url: string,
  body?: unknown,
): Promise<JsonObject> {
  const answer = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    // Nobody else is shown the token.
    redirect: "error",
    signal: AbortSignal.timeout(patienceMilliseconds),
  }).catch((cause: unknown) => {
    throw failed("its API cannot be reached", cause);
  });
  const json: unknown = await answer.json().catch(() => undefined);
  if (!isJsonObject(json) || json["success"] !== true) {
    throw failed(`its API answers with status ${answer.status}${reasonIn(json)}`);
  }
  const left = member(json["result"], "unsuccessful_keys");
  if (Array.isArray(left) && left.length > 0) throw failed(`${left.length} keys were not taken`);
  return json;
}

function namesIn(result: unknown): readonly string[] {
  return Array.isArray(result) ? result.map((one) => String(member(one, "name"))) : [];
}

/** What Cloudflare says of it, briefly. */
function reasonIn(json: unknown): string {
  const errors = member(json, "errors");
  const [first]: unknown[] = Array.isArray(errors) ? errors : [];
  const message = member(first, "message");
  return typeof message === "string" ? `: ${message.slice(0, 200)}` : "";
}

function failed(reason: string, cause?: unknown): InferenceError {
  return new InferenceError(StatusCode.Unavailable, `KV namespace: ${reason}`, { cause });
}
