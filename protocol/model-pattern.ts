/** Which models are meant: a name in which each `*` stands for any text, the empty one too. */
export interface ModelPattern {
  readonly text: string;
  /** What stands between the stars. */
  readonly pieces: readonly string[];
}

/** A pattern that is ready to be matched; nothing but `*` means anything but itself. */
export function modelPattern(text: string): ModelPattern {
  return { text, pieces: text.split("*") };
}

/** True where the pattern takes the whole name; the time is bounded by the product of the lengths. */
export function matchesPattern({ text, pieces }: ModelPattern, name: string): boolean {
  if (pieces.length === 1) return name === text;
  const first = pieces[0] ?? "";
  const last = pieces.at(-1) ?? "";
  const end = name.length - last.length;
  if (!name.startsWith(first) || !name.endsWith(last)) return false;
  let at = first.length;
  // The earliest place of each piece leaves the most room for those after it, so that nothing is ever tried twice.
  for (const piece of pieces.slice(1, -1)) {
    const found = name.indexOf(piece, at);
    if (found === -1) return false;
    at = found + piece.length;
  }
  return at <= end;
}

/** True where every name that `narrow` takes is taken by `wide`, too: a star is a text that only a star can stand for. */
export function coversPattern(wide: ModelPattern, narrow: ModelPattern): boolean {
  return matchesPattern(wide, narrow.text);
}
