import { type IncomingMessage, request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { buffer } from "node:stream/consumers";

/** One request. */
export interface HttpCall {
  readonly method: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** Told of bytes of the body that have left. */
  readonly onSent?: (bytes: number) => void;
}

export interface HttpAnswer {
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;
  readonly text: string;
}

/** An answer that is no success. */
export class HttpFailure extends Error {
  readonly answer: HttpAnswer;

  constructor(answer: HttpAnswer) {
    super(errorText(answer));
    this.answer = answer;
  }
}

/** A connection on which nothing moves for so long is given up; opening a model may take long, and says nothing. */
const silentMilliseconds = 60_000;
const pieceBytes = 256 * 1024;
const maxAnswerBytes = 16 * 2 ** 20;

/**
 * Sends a request and reads the whole answer; rejects with an HttpFailure for any status but 200, and with the system's
 * error when there is none.
 *
 * @param patient the answer may take as long as it likes
 */
export async function httpCall(call: HttpCall, patient = false): Promise<HttpAnswer> {
  const incoming = await sent(call, patient);
  if (Number(incoming.headers["content-length"] ?? 0) > maxAnswerBytes)
    throw new Error(`the answer has more than ${maxAnswerBytes} bytes`);
  const retryAfter = Number(incoming.headers["retry-after"] ?? NaN);
  const answer = {
    status: incoming.statusCode ?? 0,
    retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : undefined,
    text: (await buffer(incoming)).toString("utf8"),
  };
  if (answer.status !== 200) throw new HttpFailure(answer);
  return answer;
}

function sent(call: HttpCall, patient: boolean): Promise<IncomingMessage> {
  const { method, url, headers, body = Buffer.alloc(0), onSent } = call;
  const send = url.startsWith("https:") ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const options = { method, headers: { "content-length": String(body.length), ...headers } };
    const outgoing = send(url, options, resolve);
    outgoing.on("error", reject);
    outgoing.setTimeout(patient ? 0 : silentMilliseconds, () =>
      outgoing.destroy(new Error(`nothing moved for ${silentMilliseconds / 1000} seconds`)),
    );
    // Written piece by piece, so that it can be told how far it is.
    const write = (start: number): void => {
      if (start >= body.length) return void outgoing.end();
      const piece = body.subarray(start, start + pieceBytes);
      outgoing.write(piece, (error) => {
        if (error) return;
        onSent?.(piece.length);
        write(start + piece.length);
      });
    };
    write(0);
  });
}

function errorText({ status, text }: HttpAnswer): string {
  try {
    const json: unknown = JSON.parse(text);
    if (typeof json === "object" && json !== null && "error" in json) return String(json.error);
  } catch {
    // Not from the server itself: a proxy, or S3.
  }
  const code = /<Code>(?<code>\w{1,64})<\/Code>/u.exec(text)?.groups?.["code"];
  return `HTTP ${status}${code === undefined ? "" : ` ${code}`}`;
}
