import { ModelRepository } from "../repository/model-repository.ts";
import { openModelStores } from "./model-stores.ts";
import type { Settings } from "./settings.ts";

/** Opens the places that `--model-repository` names, as one repository. */
export async function openRepository(settings: Settings): Promise<ModelRepository> {
  const { stores } = await openModelStores(settings, process.env);
  return new ModelRepository(stores);
}
