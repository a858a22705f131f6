import { extraHeaders } from "../protocol/extra-headers.ts";
import type { UploadFile } from "../protocol/upload.ts";
import { leadingWords } from "./arguments.ts";
import { HttpFailure } from "./push/http-call.ts";
import { fileDigest, type LocalFile, readModelFolder } from "./push/model-folder.ts";
import { Progress, type ProgressOutput } from "./push/progress.ts";
import { sayWhenSlow } from "./push/say-when-slow.ts";
import { bytesThere, sendMissing } from "./push/send-missing.ts";
import { type RemoteUpload, UploadClient } from "./push/upload-client.ts";
import type { ReadSettings, Settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** Exit codes besides 0: it answers now. */
const failed = 1;
const inRepositoryOnly = 3;
const interrupted = 130;

/**
 * `tidepool push <folder>`: brings one version of a model to a server, which opens it before anybody sees it. What was
 * interrupted goes on where it was when the same command is run again.
 *
 * @returns the exit code: 0 when it answers, 1 when it was refused or could not be sent, 3 when it is in the repository
 * and does not answer
 */
export async function push({ settings }: ReadSettings, args: readonly string[]): Promise<number> {
  const [folder, ...more] = leadingWords(args);
  if (folder === undefined || more.length > 0)
    throw new UsageError(
      `push: given ${folder === undefined ? "no folder" : `${more.length} more`}, expected one folder of a model`,
    );
  if (!/^https?:\/\//u.test(settings.url) || !URL.canParse(settings.url))
    throw new UsageError(`--url: given ${settings.url}, expected http://host:port or https://host`);
  const output = process.stderr;
  process.once("SIGINT", () => {
    output.write("\ninterrupted: the same command goes on from here\n");
    process.exit(interrupted);
  });
  try {
    return await pushFolder(folder, settings, output);
  } catch (error) {
    if (error instanceof UsageError || !(error instanceof Error)) throw error;
    output.write(`tidepool: push: ${reasonOf(error, settings)}\n`);
    return failed;
  }
}

/** What is wrong with them is told without them. */
function headersOf({ headers = "" }: Settings): Readonly<Record<string, string>> {
  try {
    return extraHeaders("--headers, or TIDEPOOL_HEADERS", headers);
  } catch (cause) {
    throw new UsageError(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

async function pushFolder(
  folder: string,
  settings: Settings,
  output: ProgressOutput,
): Promise<number> {
  const headers = headersOf(settings);
  const { name, files, skipped } = await readModelFolder(folder, settings.version);
  const { url, key, model = name } = settings;
  for (const one of skipped) output.write(`not pushed, because it is hidden: ${one}\n`);
  const manifest = await withDigests(files, output);
  let progress: Progress | undefined;
  const say = (line: string): void => {
    if (progress) progress.say(line);
    else output.write(`${line}\n`);
  };
  const onRetry = (reason: string): void => say(`again: ${reason}`);
  const client = new UploadClient({ url, key, headers, model, onRetry });
  const upload = await begin(client, manifest, settings);
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  const there = bytesThere(upload);
  progress = new Progress(output, "sending", { total, start: there });
  if (there > 0) say(`going on: ${there} of ${total} bytes are there`);
  if (upload.state === "uploading")
    await sendMissing(client, upload, files, (bytes) => progress?.add(bytes)).finally(() =>
      progress?.end(),
    );
  say(`opening version ${upload.version} on the server`);
  const slow = "not yet: behind a queue it waits for a pool worker, up to 5 minutes";
  return report(model, await sayWhenSlow(client.commit(upload.id), () => say(slow)));
}

async function withDigests(
  files: readonly LocalFile[],
  output: ProgressOutput,
): Promise<readonly UploadFile[]> {
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  const progress = new Progress(output, "reading", { total });
  const manifest: UploadFile[] = [];
  for (const { path, name, bytes, shared } of files) {
    const sha256 = await fileDigest(path, (count) => progress.add(count));
    manifest.push({ name, bytes, sha256, shared });
  }
  progress.end();
  return manifest;
}

/** Begins, or goes on. */
async function begin(
  client: UploadClient,
  files: readonly UploadFile[],
  { version, restart }: Settings,
): Promise<RemoteUpload> {
  try {
    return await client.begin(files, version);
  } catch (error) {
    const other = otherUpload(error);
    if (!restart || other === undefined) throw error;
    await client.abort(other);
    return client.begin(files, version);
  }
}

/** The unfinished upload that has the version. */
function otherUpload(error: unknown): string | undefined {
  if (!(error instanceof HttpFailure) || error.answer.status !== 409) return undefined;
  const { upload } = JSON.parse(error.answer.text);
  return typeof upload === "string" ? upload : undefined;
}

function report(model: string, { version, serving_versions, reason }: RemoteUpload): number {
  const serving = serving_versions ?? [];
  const serves = serving.includes(version);
  const what = serves ? "answers now" : `does not answer: ${reason ?? "it was not loaded"}`;
  process.stdout.write(`model '${model}', version ${version}: in the repository, and ${what}\n`);
  process.stdout.write(`versions that answer: ${serving.join(", ") || "none"}\n`);
  return serves ? 0 : inRepositoryOnly;
}

function reasonOf(error: Error, { url, restart }: Settings): string {
  if (!(error instanceof HttpFailure)) return `${url}: ${error.message}`;
  const { status } = error.answer;
  if (status === 401) return `${error.message}; TIDEPOOL_KEY holds it`;
  if (otherUpload(error) !== undefined && !restart)
    return `${error.message}; --restart ends that one`;
  return error.message;
}
