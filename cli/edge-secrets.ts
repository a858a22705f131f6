import { readFile } from "node:fs/promises";
import { UsageError } from "./usage-error.ts";

const shortestSecret = 32;
const mostSecrets = 8;

/** The secrets of edge Workers in a file, one a line; throws a UsageError for a file that cannot be used. */
export async function readEdgeSecrets(file: string): Promise<readonly string[]> {
  const text = await readFile(file, "utf8").catch((cause: unknown) => {
    throw new UsageError(`--edge-secret-file: given ${file}, which cannot be read`, { cause });
  });
  const lines = text.split("\n").map((line) => line.trim());
  const secrets = lines.filter((line) => line !== "");
  if (secrets.length > 0 && secrets.length <= mostSecrets) {
    const short = secrets.findIndex((secret) => secret.length < shortestSecret);
    if (short < 0) return secrets;
    throw new UsageError(
      `--edge-secret-file: given a secret of ${secrets[short]?.length} characters, expected at least ${shortestSecret}`,
    );
  }
  throw new UsageError(
    `--edge-secret-file: given ${secrets.length} secrets, expected 1 to ${mostSecrets}, one a line`,
  );
}
