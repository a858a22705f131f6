import { UsageError } from "./usage-error.ts";

/** How the text of a flag becomes a value. */
export interface FlagType<Value> {
  /** As help and errors name it, as in `<port>` and "expected a port". */
  readonly name: string;
  /** The value, or undefined when the text is none. */
  parse(text: string): Value | undefined;
}

/** Any text, the empty one too. */
export const text: FlagType<string> = { name: "text", parse: (given) => given };

/** Any text but the empty one. */
export const path: FlagType<string> = { name: "path", parse: (given) => given || undefined };

const booleans: Readonly<Record<string, boolean>> = {
  true: true,
  True: true,
  "1": true,
  false: false,
  False: false,
  "0": false,
};

/** The spellings that Triton's own command line takes. */
export const boolean: FlagType<boolean> = { name: "boolean", parse: (given) => booleans[given] };

/** A whole number within bounds, both included. */
export function integer(minimum: number, maximum = Number.MAX_SAFE_INTEGER): FlagType<number> {
  const upTo = maximum === Number.MAX_SAFE_INTEGER ? "or more" : `to ${maximum}`;
  return {
    name: `integer, ${minimum} ${upTo}`,
    parse(given) {
      const value = Number(given);
      const fits = /^-?\d+$/u.test(given) && value >= minimum && value <= maximum;
      return fits ? value : undefined;
    },
  };
}

/** A number above zero, with or without a fraction. */
export const positiveNumber: FlagType<number> = {
  name: "number above 0",
  parse(given) {
    const value = given === "" ? Number.NaN : Number(given);
    return Number.isFinite(value) && value > 0 ? value : undefined;
  },
};

/** A TCP port; 0 lets the system choose one. */
export const port: FlagType<number> = { ...integer(0, 65_535), name: "port, 0 to 65535" };

/** One of some words. */
export function choice<const Word extends string>(...words: readonly Word[]): FlagType<Word> {
  return { name: words.join("|"), parse: (given) => words.find((word) => word === given) };
}

/** A regular expression, which must compile. */
export const pattern: FlagType<string> = {
  name: "regular expression",
  parse(given) {
    try {
      return new RegExp(given, "u").source && given;
    } catch {
      return undefined;
    }
  },
};

/** The value of a flag's text; throws a UsageError that names the flag, what was given and what was expected. */
export function parseFlag<Value>(flag: string, type: FlagType<Value>, given: string): Value {
  const value = type.parse(given);
  if (value !== undefined) return value;
  throw new UsageError(`--${flag}: given '${given}', expected ${type.name}`);
}
