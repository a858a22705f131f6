import { InferenceError, invalidArgument, StatusCode } from "../../protocol/error.ts";
import { decodeJson, readJson } from "../../protocol/json-text.ts";
import { type PartPlace, UploadConflict, type Uploads } from "../../protocol/upload.ts";
import type { DataPlane } from "../data-plane.ts";
import { readBody } from "./body.ts";
import { signedBodySha256 } from "./edge-call.ts";
import { errorJson } from "./error-status.ts";
import { type Exchange, exchangeHandler, type HttpHandler, sendJson } from "./exchange.ts";
import type { HttpOptions } from "./options.ts";
import { addRoute, type HttpRoutes } from "./routes.ts";
import { partsFrom, signedPartsJson, uploadFrom, uploadJson } from "./uploads-json.ts";

/** Answers one call with JSON; undefined for an empty answer. */
type Answer = (exchange: Exchange, uploads: Uploads, id: string) => Promise<object | undefined>;

/** A manifest of as many files as there may be is smaller. */
const maxManifestBytes = 4 * 2 ** 20;

/** Model versions on their way into the repository, and how a model is told that its files have changed. */
export function addUploadRoutes(routes: HttpRoutes, plane: DataPlane, { log }: HttpOptions): void {
  const handler = (answer: Answer): HttpHandler =>
    exchangeHandler(log, async (exchange) => {
      try {
        if (!plane.uploads) throw turnedOff();
        const json = await answer(exchange, plane.uploads, segmentsOf(exchange)[6] ?? "");
        if (json) sendJson(exchange.outgoing, 200, JSON.stringify(json));
        else exchange.outgoing.writeHead(200, ["Content-Length", "0"]).end();
      } catch (error) {
        sendConflict(exchange, error);
      }
    });
  const activate = exchangeHandler(log, async ({ modelName, outgoing }) => {
    const versions = await plane.activate(modelName);
    const json = { model_name: modelName, serving_versions: versions };
    sendJson(outgoing, 200, JSON.stringify(json));
  });
  const uploads = "/v2/repository/models/:model/uploads";
  addRoute(routes, "/v2/repository/models/:model/activate", { POST: activate });
  addRoute(routes, uploads, { POST: handler(begin) });
  addRoute(routes, `${uploads}/:upload`, { GET: handler(show), DELETE: handler(abort) });
  addRoute(routes, `${uploads}/:upload/commit`, { POST: handler(commit) });
  addRoute(routes, `${uploads}/:upload/parts`, { POST: handler(sign) });
  addRoute(routes, `${uploads}/:upload/files/:file/parts/:part`, { PUT: handler(write) });
}

async function begin(exchange: Exchange, uploads: Uploads): Promise<object> {
  const { caller, change, modelName } = exchange;
  const wanted = uploadFrom(await jsonBody(exchange));
  const upload = await uploads.begin(modelName, { ...wanted, principal: caller });
  change?.tell({ step: "begin", version: upload.version, upload: upload.id });
  return uploadJson(upload);
}

async function show({ modelName }: Exchange, uploads: Uploads, id: string): Promise<object> {
  return uploadJson(await uploads.find(modelName, id));
}

async function abort(exchange: Exchange, uploads: Uploads, id: string): Promise<undefined> {
  await tellWhich("abort", exchange, uploads, id);
  await uploads.abort(exchange.modelName, id);
}

async function commit(exchange: Exchange, uploads: Uploads, id: string): Promise<object> {
  await tellWhich("commit", exchange, uploads, id);
  const upload = await uploads.commit(exchange.modelName, id);
  exchange.change?.tell({ servingVersions: upload.servingVersions });
  return uploadJson(upload);
}

/** Says of a change, before it may fail, which upload it is about. */
async function tellWhich(
  step: "abort" | "commit",
  { modelName, change }: Exchange,
  uploads: Uploads,
  id: string,
): Promise<void> {
  if (!change) return;
  change.tell({ step, upload: id });
  const { version } = await uploads.find(modelName, id);
  change.tell({ version });
}

async function sign(exchange: Exchange, uploads: Uploads, id: string): Promise<object> {
  const parts = partsFrom(await jsonBody(exchange));
  return signedPartsJson(await uploads.signParts(exchange.modelName, id, parts));
}

async function write(exchange: Exchange, uploads: Uploads, id: string): Promise<undefined> {
  const { incoming, outgoing, modelName } = exchange;
  // The edge Worker signs both.
  const sha256 = contentDigest(incoming.headers["content-digest"]) ?? signedBodySha256(incoming);
  if (incoming.headers.expect !== undefined) outgoing.writeContinue();
  await uploads.writePart(modelName, id, placeOf(exchange), { bytes: incoming, sha256 });
}

/** `…/files/<file>/parts/<part>`, both by their numbers. */
function placeOf(exchange: Exchange): PartPlace {
  const segments = segmentsOf(exchange);
  return { file: numberOf("file", segments[8]), part: numberOf("part", segments[10]) };
}

function numberOf(subject: string, text = ""): number {
  if (/^\d{1,9}$/u.test(text)) return Number(text);
  throw invalidArgument(`${subject}: given '${text.slice(0, 64)}', expected its number, from 0`);
}

/** As in `sha-256=:<base64>:` (RFC 9530); other algorithms are not looked at. */
function contentDigest(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  const [, base64] = /(?:^|[ ,])sha-256=:(?<base64>[\w+/]{43}=):/u.exec(String(header)) ?? [];
  if (base64 !== undefined) return Buffer.from(base64, "base64").toString("hex");
  throw invalidArgument("Content-Digest: expected sha-256=:<base64>:");
}

async function jsonBody({ incoming, outgoing }: Exchange): Promise<unknown> {
  const body = await readBody(incoming, outgoing, maxManifestBytes);
  return readJson(decodeJson(body), ({ root }) => root);
}

function segmentsOf({ incoming }: Exchange): readonly string[] {
  return new URL(incoming.url ?? "", "http://host").pathname.split("/");
}

/** What is taken is 409 here; elsewhere the reference's clients expect 400 for it. */
function sendConflict(exchange: Exchange, error: unknown): void {
  if (!(error instanceof InferenceError) || error.code !== StatusCode.AlreadyExists) throw error;
  exchange.change?.end(exchange.caller, error);
  const upload = error instanceof UploadConflict ? { upload: error.upload } : {};
  const json = { ...JSON.parse(errorJson(error.message)), ...upload };
  sendJson(exchange.outgoing, conflictStatus, JSON.stringify(json));
}

const conflictStatus = 409;

function turnedOff(): InferenceError {
  const text = "the server takes no uploads of models: expected --allow-uploads";
  return new InferenceError(StatusCode.Unsupported, text);
}
