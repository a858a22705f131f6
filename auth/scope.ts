/**
 * What a caller may do, as keys and tokens spell it. None contains another.
 *
 * - `infer`: run models, and ask for the jobs that came of that
 * - `read`: metadata, configs, statistics, the index, metrics
 * - `models`: bring models, load and unload them, and forget what they have answered
 * - `admin`: settings of the server as a whole: logs, traces, shared memory
 */
export const scopes = ["infer", "read", "models", "admin"] as const;
export type Scope = (typeof scopes)[number];

/** The scope of that name, or undefined. */
export function scopeOf(name: unknown): Scope | undefined {
  return scopes.find((scope) => scope === name);
}
