import { parseFlag, type FlagType } from "./flag-type.ts";

/** One row of the table: what a flag takes, what it is for, and how far it works here. */
export interface Flag {
  readonly type: FlagType<unknown>;
  /** May be given more than once. */
  readonly repeatable: boolean;
  /** As help shows it; "" when there is none. */
  readonly defaultText: string;
  readonly help: string;
  readonly status: FlagStatus;
}

/**
 * - works: it does what help says;
 * - no effect: it is taken, with one warning that says why it changes nothing;
 * - refused: the server does not start, because it would promise what it does not do; asking for `unless` is fine;
 * - replaced: an old spelling of another flag, with one warning unless it is a plain synonym.
 */
export type FlagStatus =
  | { readonly kind: "works" }
  | { readonly kind: "no effect"; readonly why: string }
  | { readonly kind: "refused"; readonly why: string; readonly unless: string }
  | { readonly kind: "replaced"; readonly by: string; readonly translate: Translate };

type Translate = (given: string) => string;

/** A flag whose value the program reads. */
export interface WorkingFlag<Value> extends Flag {
  readonly status: { readonly kind: "works" };
  readonly default: Value;
  /** The value of the texts in the order given; throws a UsageError that has the flag's name. */
  read(name: string, texts: readonly string[]): Value;
}

/** A flag with one value; the last one given wins. */
export function flag<Value>(
  type: FlagType<Value>,
  defaultValue: Value,
  help: string,
): WorkingFlag<Value> {
  return {
    type,
    repeatable: false,
    default: defaultValue,
    defaultText: String(defaultValue),
    help,
    status: { kind: "works" },
    read: (name, texts) => parseFlag(name, type, texts.at(-1) ?? ""),
  };
}

/** A flag with one value that has no default. */
export function optional<Value>(
  type: FlagType<Value>,
  help: string,
): WorkingFlag<Value | undefined> {
  return { ...flag<Value | undefined>(type, undefined, help), defaultText: "" };
}

/** A flag that may be given many times; every value counts. */
export function repeated<Value>(
  type: FlagType<Value>,
  help: string,
): WorkingFlag<readonly Value[]> {
  return {
    type,
    repeatable: true,
    default: [],
    defaultText: "",
    help,
    status: { kind: "works" },
    read: (name, texts) => texts.map((text) => parseFlag(name, type, text)),
  };
}

/** A flag that is taken and changes nothing. */
export function noEffect(type: FlagType<unknown>, why: string): Flag {
  return row(type, why, { kind: "no effect", why });
}

/** A flag that this server must not pretend to obey; `unless` is the value that asks for nothing. */
export function refused(type: FlagType<unknown>, why: string, unless = ""): Flag {
  return row(type, why, { kind: "refused", why, unless });
}

/** An old spelling: `translate` makes the successor's text of its own. */
export function replaced(
  type: FlagType<unknown>,
  by: string,
  translate: Translate = (given) => given,
): Flag {
  return row(type, `old spelling of --${by}`, { kind: "replaced", by, translate });
}

function row(type: FlagType<unknown>, help: string, status: FlagStatus): Flag {
  return { type, repeatable: true, defaultText: "", help, status };
}
