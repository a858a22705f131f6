import { type Ensemble, isRefusal, reasonOf } from "./ensemble.ts";

/** What a file shows, or why that is not known. */
export type FileResult = { readonly filename: string } & Outcome;

type Outcome =
  | { readonly class: number; readonly probabilities: readonly number[] }
  | { readonly error: string };

const maxFileBytes = 10 * 2 ** 20;
const maxBatchFiles = 32;
const maxBatchBytes = 32 * 2 ** 20;
const batchesInFlight = 4;

/** Classifies files in batches, some batches at a time; a file that cannot be classified spoils no other's result. */
export async function classifyFiles(
  files: readonly File[],
  ensemble: Ensemble,
): Promise<readonly FileResult[]> {
  const outcomes = new Map<File, Outcome>();
  const batches = batchesOf(files.filter(({ size }) => size > 0 && size <= maxFileBytes));
  const lane = async (): Promise<void> => {
    // All lanes take from one iterator.
    for (const batch of batches) {
      const found = await classifyBatch(batch, ensemble);
      for (const [i, file] of batch.entries()) outcomes.set(file, found[i] ?? unfit(file));
    }
  };
  await Promise.all(Array.from({ length: batchesInFlight }, lane));
  return files.map((file) => ({ filename: file.name, ...(outcomes.get(file) ?? unfit(file)) }));
}

/** Files of like sizes together, because all of a batch become as long as its longest. */
function* batchesOf(files: readonly File[]): Generator<readonly File[], undefined> {
  let batch: File[] = [];
  for (const file of files.toSorted((one, other) => one.size - other.size)) {
    const full = batch.length === maxBatchFiles || (batch.length + 1) * file.size > maxBatchBytes;
    if (full) {
      yield batch;
      batch = [];
    }
    batch.push(file);
  }
  if (batch.length > 0) yield batch;
}

/** What each file of a batch shows. A batch that is refused is halved, until the file that is to blame is alone. */
async function classifyBatch(
  batch: readonly File[],
  ensemble: Ensemble,
): Promise<readonly Outcome[]> {
  try {
    const contents = await Promise.all(batch.map((file) => file.arrayBuffer()));
    return (await ensemble.classify(contents)).map(outcomeOf);
  } catch (error) {
    if (batch.length === 1 || !isRefusal(error))
      return batch.map(() => ({ error: reasonOf(error) }));
    const half = Math.ceil(batch.length / 2);
    const first = await classifyBatch(batch.slice(0, half), ensemble);
    return [...first, ...(await classifyBatch(batch.slice(half), ensemble))];
  }
}

function outcomeOf(probabilities: readonly number[]): Outcome {
  return { class: probabilities.indexOf(Math.max(...probabilities)), probabilities };
}

function unfit({ size }: File): Outcome {
  return { error: `a file of ${size} bytes, expected 1 to ${maxFileBytes}` };
}
