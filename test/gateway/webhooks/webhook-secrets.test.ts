import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { WebhookSecrets } from "../../../gateway/webhooks/webhook-secrets.ts";
import { eventually } from "../../helpers/eventually.ts";
import { SilentLog } from "../../helpers/silent-log.ts";
import { newWebhookSecret } from "../../helpers/webhooks.ts";

const folder = mkdtempSync(path.join(tmpdir(), "tidepool-secrets-"));
const file = path.join(folder, "secrets.json");
const [first, second] = [newWebhookSecret(), newWebhookSecret()];
const log = new SilentLog();
let secrets: WebhookSecrets | undefined;
afterEach(() => secrets?.close());
afterAll(() => rmSync(folder, { recursive: true }));

/** As an editor or a mounted secret does it: at once. */
function write(content: unknown): void {
  const text = typeof content === "string" ? content : JSON.stringify(content);
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

describe("WebhookSecrets", () => {
  it("has the secrets of each tenant, and none for others", async () => {
    write({ default: [first, second], blue: [second], ["__proto__"]: [first] });
    secrets = await WebhookSecrets.open(file, log);
    expect(secrets.of("default")).toEqual([first, second]);
    expect(secrets.of("blue")).toEqual([second]);
    for (const other of ["red", "constructor", ""]) expect(secrets.of(other)).toEqual([]);
  });

  it("reads the file again when it changes, and keeps the last secrets while it cannot", async () => {
    write({ default: [first] });
    const opened = await WebhookSecrets.open(file, log);
    secrets = opened;
    write({ default: [second, first] });
    await eventually(() => expect(opened.of("default")).toEqual([second, first]));
    write("{");
    await eventually(() => expect(log.warnings).toHaveLength(1));
    expect(opened.of("default")).toEqual([second, first]);
    write({ blue: [first] });
    await eventually(() => expect(opened.of("blue")).toEqual([first]));
    expect(opened.of("default")).toEqual([]);
  });

  it.each([
    ["no JSON", `{"default": ["${first}"`],
    ["a list", [first]],
    ["a text in place of a list", { default: first }],
    ["another prefix", { default: [first.replace("whsec_", "sk_")] }],
    ["too short a secret", { default: [`whsec_${Buffer.alloc(23).toString("base64")}`] }],
    ["too long a secret", { default: [`whsec_${Buffer.alloc(65).toString("base64")}`] }],
    ["what is not base64", { default: [`${first}=`] }],
    ["more secrets than it may have", { default: Array.from({ length: 6 }, () => first) }],
    ["a number", { default: [1] }],
    ["too many bytes", " ".repeat(1024 * 1024 + 1)],
  ])("refuses %s, and does not show it", async (_, content) => {
    write(content);
    const opening = WebhookSecrets.open(file, log);
    await expect(opening).rejects.toThrow(/given|expected/u);
    await expect(opening).rejects.not.toThrow(first.slice(6, 20));
  });

  it("refuses a file that is not there", async () => {
    await expect(WebhookSecrets.open(path.join(folder, "none"), log)).rejects.toThrow("ENOENT");
  });
});
