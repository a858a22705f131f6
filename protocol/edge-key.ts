/** What the name of each key's record begins with in the KV namespace of the edge Worker. */
export const edgeKeyPrefix = "api-key:";

/** The name of a key's record there, by the key's id. */
export function edgeKeyName(id: string): string {
  return `${edgeKeyPrefix}${id}`;
}
