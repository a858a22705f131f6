import { readFile } from "node:fs/promises";

/** Classifies held-out handwritten digits over HTTP with nothing but fetch: `node classify-digits.ts [URL]`. */
async function classifyDigits(server: string): Promise<void> {
  const file = new URL("held-out-digits.jsonl", import.meta.url);
  const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
  const digits = lines.map((line): Digit => JSON.parse(line));
  const answers = await classify(server, digits);
  let right = 0;
  for (const [i, { digit }] of digits.entries()) {
    const [probability, index, label] = (answers[i] ?? "").split(":");
    if (Number(index) === digit) right++;
    print(`${digit}  read as ${label?.padEnd(5)}  ${Number(probability).toFixed(3)}`);
  }
  print(`${right} of ${digits.length} right`);
}

interface Digit {
  readonly digit: number;
  readonly image: readonly (readonly number[])[];
}

interface Answer {
  readonly outputs: readonly [{ readonly data: readonly string[] }];
}

/** The best class of each image, as `<probability>:<index>:<label>`. */
async function classify(server: string, digits: readonly Digit[]): Promise<readonly string[]> {
  // The binary tensor data extension: a JSON head, then the pixels as little-endian floats.
  const pixels = new Float32Array(digits.flatMap(({ image }) => image.flat()));
  const shape = [digits.length, 8, 8];
  const parameters = { binary_data_size: pixels.byteLength };
  const head = JSON.stringify({
    inputs: [{ name: "IMAGE", shape, datatype: "FP32", parameters }],
    outputs: [{ name: "PROBABILITIES", parameters: { classification: 1 } }],
  });
  const response = await fetch(`${server}/v2/models/digits/infer`, {
    method: "POST",
    headers: { "Inference-Header-Content-Length": String(Buffer.byteLength(head)) },
    body: new Blob([head, pixels]),
  });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  const answer: Answer = JSON.parse(await response.text());
  return answer.outputs[0].data;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

await classifyDigits(process.argv[2] ?? "http://127.0.0.1:8000");
