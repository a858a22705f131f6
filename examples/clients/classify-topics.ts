/** Tells what sentences are about, with text in and probabilities out as plain JSON: `node classify-topics.ts [SENTENCE…] [URL]`. */
async function classifyTopics(server: string, sentences: readonly string[]): Promise<void> {
  const text = { name: "TEXT", shape: [sentences.length, 1], datatype: "BYTES", data: sentences };
  const best = { name: "PROBABILITIES", parameters: { classification: 1 } };
  const response = await fetch(`${server}/v2/models/topics/infer`, {
    method: "POST",
    body: JSON.stringify({ inputs: [text], outputs: [best] }),
  });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  const answer: Answer = JSON.parse(await response.text());
  for (const [i, sentence] of sentences.entries()) {
    const [probability, , topic] = (answer.outputs[0].data[i] ?? "").split(":");
    process.stdout.write(`${topic?.padEnd(8)} ${Number(probability).toFixed(3)}  ${sentence}\n`);
  }
}

interface Answer {
  readonly outputs: readonly [{ readonly data: readonly string[] }];
}

const given = process.argv.slice(2);
const server = /^https?:\/\//u.test(given.at(-1) ?? "") ? given.pop() : undefined;
const examples = [
  "Dark clouds and a cold wind, but no rain yet.",
  "Add garlic to the warm butter.",
  "Two goals in the final minute won the match!",
  "We missed the ferry to the island.",
];
await classifyTopics(server ?? "http://127.0.0.1:8000", given.length > 0 ? given : examples);
