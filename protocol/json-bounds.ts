import { type InferenceError, invalidArgument } from "./error.ts";
import { maxNesting, nestingError } from "./exact-json-reader.ts";

/** So many may stand in one text. An empty one takes a client two bytes and the server a hundred, and a microsecond. */
const maxArrays = 4_000_000;
const maxMembers = 100_000;

/**
 * Refuses JSON that would take far more memory and time to read than it has bytes. Few brackets can do no harm, so that
 * nearly every text is only searched for them; the others are walked.
 */
export function checkJsonBounds(text: string): void {
  const fewMembers = text.length <= maxMembers || count(text, ":", maxMembers) <= maxMembers;
  if (fewMembers && count(text, "[{", maxNesting) <= maxNesting) return;
  const { depth, arrays, members } = measure(text);
  if (depth > maxNesting) throw nestingError();
  if (arrays > maxArrays) {
    throw tooMany(`${maxArrays} arrays; give large tensors flat or as binary data`);
  }
  if (members > maxMembers) throw tooMany(`${maxMembers} objects and members`);
}

function tooMany(bound: string): InferenceError {
  return invalidArgument(`the request's JSON has too many parts, expected at most ${bound}`);
}

/** How often one of the characters occurs; stops soon after `enough`. */
function count(text: string, characters: string, enough: number): number {
  let found = 0;
  for (const character of characters) {
    let at = text.indexOf(character);
    while (at !== -1 && found <= enough) {
      found += 1;
      at = text.indexOf(character, at + 1);
    }
  }
  return found;
}

interface Measured {
  readonly depth: number;
  readonly arrays: number;
  /** Objects, and the members in them. */
  readonly members: number;
}

function measure(text: string): Measured {
  let open = 0;
  let depth = 0;
  let arrays = 0;
  let members = 0;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (char === '"') at = stringEnd(text, at);
    else if (char === "]" || char === "}") open -= 1;
    else if (char === "[" || char === "{") {
      open += 1;
      depth = Math.max(depth, open);
      if (char === "[") arrays += 1;
      else members += 1;
    } else if (char === ":") members += 1;
  }
  return { depth, arrays, members };
}

/** Where the string that begins at an offset ends. */
function stringEnd(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at;
  }
  return text.length;
}
