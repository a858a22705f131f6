import type { InstanceSettings } from "../backend/backend.ts";
import { checkBackend } from "../backend/backends.ts";
import { onnxFile } from "../backend/model-file.ts";
import { cpu } from "../devices.ts";
import type { FetchedVersion } from "../fetched-version.ts";
import { FileDigests, textDigest } from "./file-digests.ts";
import { FindingStore } from "./finding-store.ts";
import { GraphCache, type SavedGraph } from "./graph-cache.ts";
import type { GraphFinding } from "./graph-finding.ts";
import { graphKey, runtimeVersion } from "./graph-key.ts";
import { modelDigest } from "./model-digest.ts";
import { openApart, type ApartLimits } from "./open-apart.ts";

export interface ProbeOptions extends ApartLimits {
  /** Where is kept what was found. */
  readonly cacheDirectory: string;
}

/** What is known of a version before it runs in this process. */
export interface ProbedVersion {
  readonly finding: GraphFinding;
  /** Held until it is released. */
  readonly graph: SavedGraph | undefined;
}

/** Below this, opening the original is as quick and takes no more memory. */
const smallestSavedBytes = 1024 * 1024;

/**
 * Opens model files that were never seen in a process of their own, and says what is in them; a file that was seen before
 * costs its hash only. The optimised graph of that first time is kept for the instances.
 */
export class Probe {
  readonly #options: ProbeOptions;
  readonly #digests: FileDigests;
  readonly #findings: FindingStore;
  readonly #graphs: GraphCache;

  constructor(options: ProbeOptions) {
    this.#options = options;
    this.#digests = new FileDigests(options.cacheDirectory);
    this.#findings = new FindingStore(options.cacheDirectory);
    this.#graphs = new GraphCache(options.cacheDirectory);
  }

  /**
   * Rejects with the reason that the file cannot be opened.
   *
   * @param onCpu whether an instance will run on the CPU; the graph is optimised for that and kept only then
   */
  async version(source: FetchedVersion, onCpu: boolean): Promise<ProbedVersion> {
    checkBackend(source.config);
    const file = onnxFile(source.config, source.versionDirectory);
    const { text, bytes, withWeights } = await modelDigest(file, this.#digests);
    const name = textDigest(`${text}\0${runtimeVersion}`);
    const saves = onCpu && withWeights && bytes >= smallestSavedBytes;
    const key = saves ? await graphKey(text, source.config) : undefined;
    const known = await this.#findings.get(name);
    const graph = key === undefined ? undefined : await this.#graphs.find(key);
    if (known && (graph || key === undefined)) return { finding: known, graph };
    graph?.release();
    const finding = await this.#open(settingsOf(source), key);
    await this.#findings.put(name, finding);
    return { finding, graph: key === undefined ? undefined : await this.#graphs.find(key) };
  }

  async #open(settings: InstanceSettings, key: string | undefined): Promise<GraphFinding> {
    let finding: GraphFinding | undefined;
    if (key !== undefined) {
      await this.#graphs.save(key, async (saveTo) => {
        finding = await openApart({ settings, saveTo }, this.#options);
      });
    }
    if (finding) return finding;
    // Maybe only saving went wrong. If so, that is kept as well: the next start need not try again.
    finding = await openApart({ settings }, this.#options);
    if (key !== undefined) await this.#graphs.save(key, async () => {});
    return finding;
  }
}

function settingsOf({ name, config, versionDirectory }: FetchedVersion): InstanceSettings {
  return { modelName: name, config, versionDirectory, device: cpu, cores: 1 };
}
