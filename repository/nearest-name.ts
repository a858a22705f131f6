/** The known name a mistyped one most likely stands for, or undefined when none is near. */
export function nearestName(typed: string, known: readonly string[]): string | undefined {
  const mostEdits = Math.max(1, Math.floor(typed.length / 4));
  // A long name is no typing error, and comparing costs the product of the lengths.
  if (typed.length > 64) return undefined;
  let best: { readonly name: string; readonly edits: number } | undefined;
  for (const name of known) {
    const edits = editDistance(typed.toLowerCase(), name.toLowerCase());
    if (edits <= mostEdits && edits < (best?.edits ?? Infinity)) best = { name, edits };
  }
  return best?.name;
}

/** Insertions, deletions and substitutions that turn one text into the other. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const substituted = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(substituted, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
