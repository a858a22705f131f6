import { createServer, type IncomingMessage } from "node:http";

/** What the commands of `tidepool keys` are told of it. */
export interface KvApi {
  readonly flags: readonly string[];
  /** While it is set, nothing is done, and this is the status of the answer. */
  failure: number | undefined;
  close(): void;
}

export const kvToken = "token-of-a-test";
const pageLength = 2;

interface Page {
  readonly keys: readonly { readonly name: string }[];
  readonly list_complete: boolean;
  readonly cursor?: string;
}

/** What is behind the API: that of an edge Worker in workerd, or one without any. */
export interface Namespace {
  put(name: string, text: string): Promise<void>;
  delete(name: string): Promise<void>;
  list(options: { prefix: string; limit: number; cursor: string }): Promise<Page>;
}

/** A namespace that no edge Worker reads. */
export class MemoryNamespace implements Namespace {
  texts = new Map<string, string>();

  async put(name: string, text: string): Promise<void> {
    this.texts.set(name, text);
  }

  async delete(name: string): Promise<void> {
    this.texts.delete(name);
  }

  async list({
    prefix,
    limit,
    cursor,
  }: {
    prefix: string;
    limit: number;
    cursor: string;
  }): Promise<Page> {
    const from = Number(cursor);
    const names = [...this.texts.keys()].filter((name) => name.startsWith(prefix));
    const keys = names.slice(from, from + limit).map((name) => ({ name }));
    const isComplete = from + limit >= names.length;
    return {
      keys,
      list_complete: isComplete,
      ...(!isComplete && { cursor: String(from + limit) }),
    };
  }
}

/** Cloudflare's REST API as far as it is about a KV namespace, in front of any that has its methods. */
export async function startKvApi(keys: Namespace): Promise<KvApi> {
  const base = "/client/v4/accounts/acc0/storage/kv/namespaces/ns0";
  const answers: Readonly<
    Record<string, (incoming: IncomingMessage, url: URL) => Promise<object>>
  > = {
    [`PUT ${base}/bulk`]: async (incoming) => {
      for (const { key, value } of await jsonOf(incoming)) await keys.put(key, value);
      return { result: { unsuccessful_keys: [] } };
    },
    [`POST ${base}/bulk/delete`]: async (incoming) => {
      for (const key of await jsonOf(incoming)) await keys.delete(key);
      return { result: { unsuccessful_keys: [] } };
    },
    [`GET ${base}/keys`]: async (_incoming, { searchParams }) => {
      const cursor = searchParams.get("cursor") ?? "";
      const prefix = searchParams.get("prefix") ?? "";
      const page = await keys.list({ prefix, limit: pageLength, cursor });
      const next = page.cursor ?? "";
      return { result: page.keys, result_info: { cursor: next } };
    },
  };
  const server = createServer((incoming, outgoing) => {
    const url = new URL(incoming.url ?? "", "http://localhost");
    const answer = answers[`${incoming.method} ${url.pathname}`];
    const isKnown = incoming.headers.authorization === `Bearer ${kvToken}`;
    const status = api.failure ?? (isKnown ? (answer ? 200 : 404) : 403);
    const work = status === 200 && answer ? answer(incoming, url) : Promise.resolve({});
    const errors = status === 200 ? [] : [{ code: 10000, message: "Authentication error" }];
    void work.then((json) =>
      outgoing.writeHead(status).end(JSON.stringify({ success: status === 200, errors, ...json })),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const own = server.address();
  const port = typeof own === "object" ? own?.port : "";
  const api: KvApi = {
    flags: [
      "--kv-account-id=acc0",
      "--kv-namespace-id=ns0",
      `--kv-endpoint=http://127.0.0.1:${port}/client/v4`,
    ],
    failure: undefined,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
  return api;
}

async function jsonOf(incoming: IncomingMessage) {
  let text = "";
  for await (const chunk of incoming) text += String(chunk);
  return JSON.parse(text);
}
