import { type RepositoryIndexEntry, ModelState } from "../../protocol/repository-index.ts";
import type { ListedModel } from "../../repository/model-repository.ts";
import type { ModelRecord } from "./model-record.ts";

/** The lines of one name in the repository index: what its record tells, or the repository where there is none. */
export function indexLines(
  name: string,
  listed: ListedModel | undefined,
  record: ModelRecord | undefined,
): readonly RepositoryIndexEntry[] {
  if (listed?.ambiguous && !record?.ready(""))
    return [
      { name, state: ModelState.Unavailable, reason: "not unique across all model repositories" },
    ];
  const lines = record?.index() ?? [];
  // Nothing runs, and nothing is there to load again.
  if (!listed && record?.dormant) return [];
  return lines.length === 0 ? [{ name }] : lines;
}
