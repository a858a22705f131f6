import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { graphFinding, type GraphFinding } from "./graph-finding.ts";

/** Keeps findings on local disk, one file for each model content, so that each file is opened apart only once. */
export class FindingStore {
  readonly #folder: string;

  constructor(cacheDirectory: string) {
    // Another layout of the files gets another folder.
    this.#folder = path.join(cacheDirectory, "findings-1");
  }

  /** A file that is missing or unreadable counts as not seen. */
  async get(digest: string): Promise<GraphFinding | undefined> {
    try {
      return graphFinding.parse(JSON.parse(await readFile(this.#file(digest), "utf8")));
    } catch {
      return undefined;
    }
  }

  async put(digest: string, finding: GraphFinding): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    // Another process may read at this moment: it sees the whole file or none.
    const unfinished = this.#file(`${digest}.${randomUUID()}`);
    await writeFile(unfinished, JSON.stringify(finding));
    await rename(unfinished, this.#file(digest));
  }

  #file(digest: string): string {
    return path.join(this.#folder, `${digest}.json`);
  }
}
