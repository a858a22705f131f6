import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

/**
 * Does some work only when its inputs changed since it last succeeded. The stamp is written last and removed with what
 * it vouches for, so that an interrupted set-up starts that part again.
 *
 * @param {{ stamp: string, inputs: string[], work: () => Promise<void> }} part paths of the stamp and of the input files
 */
export async function unlessStamped({ stamp, inputs, work }) {
  const hash = createHash("sha256");
  for (const input of inputs) hash.update(readFileSync(input));
  const wanted = hash.digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  await work();
  mkdirSync(path.dirname(stamp), { recursive: true });
  writeFileSync(stamp, wanted);
}
