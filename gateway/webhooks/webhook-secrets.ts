import { readFile, stat } from "node:fs/promises";
import { isJsonObject } from "../../protocol/json-access.ts";
import type { Logger } from "../../telemetry/logger.ts";

const mostBytes = 1024 * 1024;
const mostOfTenant = 5;
const lookMilliseconds = 1000;

/** The secrets that sign webhooks, by tenant, from a file that may change at any time. */
export class WebhookSecrets {
  readonly #file: string;
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout;
  #secrets: ReadonlyMap<string, readonly string[]> = new Map();
  #version = "";
  #failing = false;

  private constructor(file: string, log: Logger) {
    this.#file = file;
    this.#log = log;
    this.#timer = setInterval(() => void this.#lookAgain(), lookMilliseconds).unref();
  }

  /** Rejects when the file cannot be read now; later on, what it said last goes on to hold. */
  static async open(file: string, log: Logger): Promise<WebhookSecrets> {
    const secrets = new WebhookSecrets(file, log);
    try {
      await secrets.#look();
    } catch (error) {
      secrets.close();
      throw error;
    }
    return secrets;
  }

  /** None for a tenant that is to have no webhooks. */
  of(tenant: string): readonly string[] {
    return this.#secrets.get(tenant) ?? [];
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #lookAgain(): Promise<void> {
    try {
      await this.#look();
      this.#failing = false;
    } catch (err) {
      if (!this.#failing)
        this.#log.warn("webhook secrets cannot be read: the last ones hold", { err });
      this.#failing = true;
    }
  }

  async #look(): Promise<void> {
    const { ino, size, mtimeNs } = await stat(this.#file, { bigint: true });
    const version = `${ino} ${size} ${mtimeNs}`;
    if (version === this.#version) return;
    if (size > mostBytes) throw new Error(`given ${size} bytes, expected ${mostBytes} at most`);
    this.#secrets = readSecrets(await readFile(this.#file, "utf8"));
    this.#version = version;
  }
}

/** Reads `{ "tenant": ["whsec_…", …] }`; errors never show what was given, because that is secret. */
function readSecrets(text: string): ReadonlyMap<string, readonly string[]> {
  const json = parsed(text);
  if (!isJsonObject(json)) throw new Error("expected an object of lists of secrets by tenant");
  return new Map(
    Object.entries(json).map(([tenant, list]) => [tenant, secretsOf(tenant, list)] as const),
  );
}

/** Without the cause, which quotes the text. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("given no JSON");
  }
}

function secretsOf(tenant: string, list: unknown): readonly string[] {
  if (Array.isArray(list) && list.length <= mostOfTenant && list.every(isSecret)) return list;
  throw new Error(
    `tenant '${tenant}': expected a list of at most ${mostOfTenant} texts, each whsec_ and 24 to 64 bytes in base64`,
  );
}

function isSecret(value: unknown): value is string {
  const [, base64 = ""] = /^whsec_(?<base64>[\w+/]+=*)$/u.exec(String(value)) ?? [];
  const bytes = Buffer.from(base64, "base64");
  const whole = bytes.toString("base64") === base64;
  return typeof value === "string" && whole && bytes.length >= 24 && bytes.length <= 64;
}
