import { deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { binaryInfer, errorOf } from "../helpers/http-client.ts";
import type { Answer, HttpClient } from "../helpers/http-client.ts";
import { scrape } from "../helpers/scrape.ts";
import { serving } from "../helpers/serving.ts";
import { goodBody, writeEchoModels } from "./echo-models.ts";

const megabyte = 2 ** 20;
const limit = 2 * megabyte;
const tooLarge = `maximum allowed input size of ${limit} bytes. Use --http-max-input-size`;
const tooDeep = "JSON nesting depth exceeds maximum allowed limit (100)";

/** A body to `list` whose one input has other fields. */
function withInput(changes: object): object {
  return { inputs: [{ ...goodBody.inputs[0], ...changes }] };
}

function withShape(shape: string): string {
  return `{"inputs":[{"name":"x","datatype":"FP32","shape":${shape},"data":[1,2]}]}`;
}

/** A request to a model with binary data, which says that it has other sizes than it has. */
function binary(model: string, input: object, tail: Uint8Array, size = tail.length) {
  const parameters = { binary_data_size: size };
  const head = { inputs: [{ name: "x", datatype: "FP32", shape: [2], ...input, parameters }] };
  return (http: HttpClient) => http.infer(model, ...binaryInfer(head, tail));
}

const strings = { datatype: "BYTES", shape: [1] };
const zeros = Buffer.alloc(64 * megabyte);
/** A gigabyte of zeros in a megabyte. */
const gzipBomb = Buffer.concat(Array.from({ length: 16 }, () => gzipSync(zeros)));
const deflateBomb = deflateSync(zeros);

type BadRequest = readonly [
  title: string,
  send: (http: HttpClient) => Promise<Answer>,
  status: number,
  text: string,
];

function list(body: object | string | Buffer, headers: Readonly<Record<string, string>> = {}) {
  return (http: HttpClient) => http.infer("list", body, headers);
}

function named(name: string) {
  return (http: HttpClient) => http.infer(name, goodBody);
}

function headLength(length: string) {
  return list(goodBody, { "Inference-Header-Content-Length": length });
}

// What the reference answers with 500, because it cannot read it, has 500 here, but for dimensions: clients have grown used to it.
const badRequests: readonly BadRequest[] = [
  ["a wrong shape", list(withInput({ shape: [2, 1] })), 400, "Expected [-1], got [2,1]"],
  ["fewer elements than the shape", list(withInput({ shape: [3] })), 500, "true shape of 'data'"],
  ["a wrong datatype", list(withInput({ datatype: "INT32" })), 400, "expects 'FP32'"],
  ["a datatype that is none", list(withInput({ datatype: "FP99" })), 400, "invalid datatype"],
  ["strings as numbers", list(withInput({ data: ["a", "b"] })), 500, "parse 'data'"],
  ["no data", list(withInput({ data: undefined })), 400, "But no field is set"],
  ["a dimension of 2^53 + 1", list(withShape("[1,9007199254740993]")), 400, "from 0 to 2^31-1"],
  ["a dimension of 1e300", list(withShape("[1e300]")), 400, "from 0 to 2^31-1"],
  ["a dimension of 1e400", list(withShape("[1e400]")), 400, "from 0 to 2^31-1"],
  ["a dimension of -1", list(withShape("[1,-1]")), 400, "from 0 to 2^31-1"],
  ["a dimension of 1.5", list(withShape("[1,1.5]")), 400, "from 0 to 2^31-1"],
  ["a dimension as a string", list(withShape('["2"]')), 400, "got a string"],
  [
    "an element count beyond 2^53",
    binary("grid", { shape: [2 ** 31 - 1, 2 ** 31 - 1] }, Buffer.alloc(0)),
    400,
    "more elements than any tensor can hold",
  ],
  [
    "an element count of 0 with a dimension beyond 2^31",
    binary("grid", { shape: [0, 2 ** 53 - 1] }, Buffer.alloc(0)),
    400,
    "integers from 0 to 2^31-1",
  ],
  [
    "a batch over max_batch_size",
    binary("batch", { shape: [9, 4] }, Buffer.alloc(144)),
    400,
    "batch-size must be <= 8",
  ],
  ["an empty batch", binary("batch", { shape: [0, 4] }, Buffer.alloc(0)), 400, "must be >= 1"],
  ["100,000 brackets", list("[".repeat(100_000)), 400, tooDeep],
  ["100,000 braces", list('{"a":'.repeat(100_000)), 400, tooDeep],
  ["100,000 brackets of data", list(withShape("[".repeat(100_000))), 400, tooDeep],
  [
    "100,000 brackets to another endpoint",
    (http) => http.post("/v2/repository/index", "[".repeat(100_000)),
    400,
    tooDeep,
  ],
  ["JSON that is mostly members", list(`[${'{"":0},'.repeat(100_001)}0]`), 400, "100000 objects"],
  ["a large body", list(Buffer.alloc(limit + 1)), 400, tooLarge],
  [
    "a large body in chunks",
    list(Buffer.alloc(limit + 1), { "Transfer-Encoding": "chunked" }),
    400,
    tooLarge,
  ],
  [
    "a large body to another endpoint",
    (http) => http.post("/v2/repository/index", Buffer.alloc(limit + 1)),
    400,
    tooLarge,
  ],
  ["a gzip bomb", list(gzipBomb, { "Content-Encoding": "gzip" }), 400, tooLarge],
  ["a deflate bomb", list(deflateBomb, { "Content-Encoding": "deflate" }), 400, tooLarge],
  ["gzip that is none", list(goodBody, { "Content-Encoding": "gzip" }), 400, "not valid gzip"],
  [
    "half of a gzip body",
    list(gzipSync(JSON.stringify(goodBody)).subarray(0, 40), { "Content-Encoding": "gzip" }),
    400,
    "not valid gzip",
  ],
  ["another coding", list(goodBody, { "Content-Encoding": "br" }), 501, "compression type"],
  ["a head length below 0", headLength("-1"), 400, "header size should be in range"],
  ["a head length beyond the body", headLength("1000"), 400, "header size should be in range"],
  ["a head length that is no number", headLength("many"), 400, "got: 'many'"],
  ["a head length that ends inside of the JSON", headLength("20"), 500, "failed to parse"],
  ["too little binary data", binary("list", {}, Buffer.alloc(7), 8), 400, "expecting 1 additional"],
  ["too much binary data", binary("list", {}, Buffer.alloc(9), 8), 400, "unexpected additional"],
  ["an odd size of binary data", binary("list", {}, Buffer.alloc(7)), 400, "Expected 8, got 7"],
  ["a negative size", binary("list", {}, Buffer.alloc(8), -1), 500, "parse 'binary_data_size'"],
  ["a huge size", binary("list", {}, Buffer.alloc(8), 1e300), 400, "unexpected size for input"],
  ["half a string length", binary("words", strings, Buffer.from([1, 0])), 400, "only 2 bytes"],
  [
    "a string length beyond the data",
    binary("words", strings, Buffer.from([255, 255, 255, 255, 65])),
    400,
    "string of length 4294967295 but only 1 bytes",
  ],
  ["too many strings", binary("words", strings, Buffer.alloc(8)), 400, "string elements 2"],
  [
    "too few strings",
    binary("words", { ...strings, shape: [2 ** 31 - 1] }, Buffer.alloc(4)),
    400,
    "expected 2147483647 string elements",
  ],
  [
    "an input twice",
    list({ inputs: [...goodBody.inputs, ...goodBody.inputs] }),
    400,
    "input 'x' already exists",
  ],
  [
    "thousands of inputs",
    list({
      inputs: Array.from({ length: 9999 }, (_, i) => ({ ...goodBody.inputs[0], name: `${i}` })),
    }),
    400,
    "expected 1 inputs but got 9999",
  ],
  [
    "thousands of outputs",
    list({ ...goodBody, outputs: Array.from({ length: 9999 }, (_, i) => ({ name: `${i}` })) }),
    400,
    "unexpected inference output '0'",
  ],
  ["no body", (http) => http.infer("batch", ""), 400, "Expected 16, got 0"],
  ["half of the JSON", list('{"inputs":[{"name'), 500, "Missing a closing quotation mark"],
  ["bytes that are not UTF-8", list(Buffer.from([0x7b, 0xff, 0x7d])), 500, "Invalid encoding"],
  ["a timeout below 0", list({ ...goodBody, parameters: { timeout: -1 } }), 500, "'timeout'"],
  ["a model named ..", named(".."), 404, "Not Found"],
  ["a model named ../etc", named("%2e%2e%2fetc"), 404, "unknown model: '../etc'"],
  ["a name with NUL", named("list%00"), 404, "unknown model: 'list\0'"],
  ["a name that is not UTF-8", named("%ff"), 404, "unknown model: '%ff'"],
  ["a name of 10 kB", named("n".repeat(10_000)), 404, "unknown model: 'nnn"],
  ["a name of 20 kB", named("n".repeat(20_000)), 431, "more than 16384 bytes"],
  ["a name that all objects have", named("constructor"), 404, "unknown model: 'constructor'"],
  ["a header of 20 kB", list(goodBody, { a: "x".repeat(20_000) }), 431, "more than 16384 bytes"],
];

describe("tidepool serve, asked badly over HTTP", () => {
  const running = serving(writeEchoModels, `--http-max-input-size=${limit}`);
  const infer = (): Promise<Answer> => running.http.infer("list", goodBody);

  it.each(badRequests)("refuses %s and says why", async (_, send, status, text) => {
    const [answer, other] = await Promise.all([send(running.http), infer()]);
    expect(answer.status).toBe(status);
    expect(errorOf(answer)).toContain(text);
    expect(answer.bytes.length).toBeLessThan(5000);
    expect(other.status).toBe(200);
  });

  it("takes an output twice as once", async () => {
    const answer = await running.http.infer("list", {
      ...goodBody,
      outputs: [{ name: "y" }, { name: "y" }],
    });
    expect(JSON.parse(answer.text).outputs).toHaveLength(1);
  });

  it("keeps no memory of any of it", async () => {
    const residentBytes = async (): Promise<number> =>
      (await scrape(running.server.metrics)).get("tidepool_process_resident_memory_bytes") ?? NaN;
    const repeat = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i += 1)
        await Promise.all(badRequests.map(([, send]) => send(running.http)));
    };
    // The heap grows to its working size first; what is kept of requests would make it grow on and on.
    await repeat(30);
    const before = await residentBytes();
    await repeat(60);
    expect((await residentBytes()) - before).toBeLessThan(100 * megabyte);
    expect((await infer()).status).toBe(200);
    expect(running.server.lines.filter(({ level }) => level !== "info")).toEqual([]);
  }, 60_000);
});
