import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { CacheFolder } from "./cache-folder.ts";
import { isGraphFinding, type GraphFinding } from "./graph-finding.ts";

const maxBytes = 16 * 1024 * 1024;

/** Keeps findings on local disk, one file for each model content, so that each file is opened apart only once. */
export class FindingStore {
  readonly #files: CacheFolder;

  constructor(cacheDirectory: string) {
    // Another layout of the files gets another folder.
    this.#files = new CacheFolder(path.join(cacheDirectory, "findings-1"), maxBytes);
  }

  /** A file that is missing or unreadable counts as not seen. */
  async get(name: string): Promise<GraphFinding | undefined> {
    try {
      const file = await this.#files.find(name);
      const value: unknown = file && JSON.parse(await readFile(file, "utf8"));
      return isGraphFinding(value) ? value : undefined;
    } catch {
      return undefined;
    }
  }

  async put(name: string, finding: GraphFinding): Promise<void> {
    await this.#files.put(name, (to) => writeFile(to, JSON.stringify(finding), { mode: 0o600 }));
  }
}
