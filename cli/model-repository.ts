import type { ModelCacheCounters } from "../repository/model-cache.ts";
import { ModelRepository } from "../repository/model-repository.ts";
import { openModelStores } from "./model-stores.ts";
import type { Settings } from "./settings.ts";

export interface OpenedRepository {
  readonly repository: ModelRepository;
  /** Of the local copy of models in S3. */
  readonly cacheCounters: Readonly<ModelCacheCounters>;
}

/** Opens the places that `--model-repository` names, as one repository. */
export async function openRepository(settings: Settings): Promise<OpenedRepository> {
  const { uploads, cacheCounters } = await openModelStores(settings, process.env);
  const stores = uploads.map(({ store }) => store);
  return { repository: new ModelRepository(stores, uploads), cacheCounters };
}
