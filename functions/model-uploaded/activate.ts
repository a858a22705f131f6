import { isJsonObject } from "../../protocol/json-access.ts";

/** The gateway that is told of models. */
export interface GatewayOptions {
  /** As in `http://gateway:8000`. */
  readonly url: string;
  /** With scope `models`. */
  readonly key: string | undefined;
  /** What it wants besides. */
  readonly headers: Readonly<Record<string, string>>;
  /** How often it is asked while it is away or busy. */
  readonly attempts: number;
  readonly fetch: typeof fetch;
  readonly sleep: (milliseconds: number) => Promise<void>;
}

const firstPauseMilliseconds = 500;
const longestPauseMilliseconds = 60_000;
/** A pool may have to be woken for it. */
const patienceMilliseconds = 300_000;

/**
 * Has the gateway serve what the repository has of a model by now; it looks for itself, so that telling it twice, or too
 * late, does no harm.
 *
 * @returns the versions that answer
 */
export async function activate(
  model: string,
  { url, key, headers, attempts, fetch, sleep }: GatewayOptions,
): Promise<readonly string[]> {
  const place = `/v2/repository/models/${encodeURIComponent(model)}/activate`;
  for (let tried = 1; ; tried++) {
    const answer = await fetch(url.replace(/\/+$/u, "") + place, {
      method: "POST",
      headers: { ...headers, ...(key !== undefined && { authorization: `Bearer ${key}` }) },
      // Another server is not to get them.
      redirect: "manual",
      signal: AbortSignal.timeout(patienceMilliseconds),
    }).catch((cause: unknown) => new Error("the gateway cannot be reached", { cause }));
    if (!(answer instanceof Error) && answer.ok) return versionsIn(await answer.json());
    const error = answer instanceof Error ? answer : new Error(await reasonIn(answer));
    const passing = answer instanceof Error || answer.status === 429 || answer.status === 503;
    if (!passing || tried === attempts) throw error;
    await sleep(Math.min(firstPauseMilliseconds * 2 ** (tried - 1), longestPauseMilliseconds));
  }
}

function versionsIn(json: unknown): readonly string[] {
  const versions = isJsonObject(json) ? json["serving_versions"] : undefined;
  return Array.isArray(versions) ? versions.map(String) : [];
}

async function reasonIn(answer: Response): Promise<string> {
  const json: unknown = await answer.json().catch(() => undefined);
  const error = isJsonObject(json) ? json["error"] : undefined;
  return `HTTP ${answer.status}${typeof error === "string" ? `: ${error}` : ""}`;
}
