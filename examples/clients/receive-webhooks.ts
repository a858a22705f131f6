import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingHttpHeaders } from "node:http";

/** Receives webhooks and prints those whose signature is right: `WEBHOOK_SECRET=whsec_… node receive-webhooks.ts PORT`. */
const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks).toString();
  const genuine = isGenuine(request.headers, body);
  // Any answer from 200 to 299 says that it has arrived; the work that it causes can be done afterwards.
  response.writeHead(genuine ? 204 : 400).end();
  if (!genuine || isKnown(String(request.headers["webhook-id"]))) return;
  const { type, data }: Webhook = JSON.parse(body);
  process.stdout.write(`${type} ${JSON.stringify(data)}\n`);
});

interface Webhook {
  readonly type: "job.completed" | "job.failed" | "job.cancelled";
  readonly data: { readonly job_id: string; readonly result?: string };
}

const secret = process.env["WEBHOOK_SECRET"]?.replace("whsec_", "") ?? "";
const toleranceSeconds = 300;

/** The library of Standard Webhooks does the same: `new Webhook(secret).verify(body, headers)`. */
function isGenuine(headers: IncomingHttpHeaders, body: string): boolean {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": all } = headers;
  // Somebody may have seen one, and send it again later.
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) < toleranceSeconds)) return false;
  const signed = `${String(id)}.${String(timestamp)}.${body}`;
  const mac = createHmac("sha256", Buffer.from(secret, "base64")).update(signed).digest("base64");
  const expected = Buffer.from(`v1,${mac}`);
  // While the sender changes its secret, there is one signature for each.
  return String(all)
    .split(" ")
    .map((signature) => Buffer.from(signature))
    .some((given) => given.length === expected.length && timingSafeEqual(given, expected));
}

const known = new Set<string>();

/** A webhook that was answered may come again, when the answer was lost. */
function isKnown(id: string): boolean {
  if (known.has(id)) return true;
  known.add(id);
  return false;
}

if (secret === "") throw new Error("WEBHOOK_SECRET: given nothing, expected whsec_…");
server.listen(Number(process.argv[2] ?? 9000), "127.0.0.1");
