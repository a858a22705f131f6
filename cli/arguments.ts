import { nearestName } from "../repository/nearest-name.ts";
import { findFlag, flagTable } from "./flag-table.ts";
import { boolean } from "./flag-type.ts";
import { UsageError } from "./usage-error.ts";

/**
 * The texts of every flag on a command line, in the order given: `--flag=v`, `--flag v`, and a boolean's bare `--flag`.
 * Throws a UsageError for what is no flag, with the nearest name that is one.
 *
 * @param hint what else to say of a word among them
 */
export function flagsFromArguments(
  args: readonly string[],
  hint = "",
): Map<string, readonly string[]> {
  const given = new Map<string, string[]>();
  for (let at = 0; at < args.length; at++) {
    const [name, inline] = splitArgument(args[at] ?? "", hint);
    const following = inline === undefined ? followingValue(name, args[at + 1]) : undefined;
    if (following !== undefined) at++;
    const texts = given.get(name) ?? [];
    texts.push(inline ?? following ?? "true");
    given.set(name, texts);
  }
  return given;
}

/** What stands before the first flag: only commands of several parts take any. */
export function leadingWords(args: readonly string[]): readonly string[] {
  const first = args.findIndex((argument) => argument.startsWith("--"));
  return first === -1 ? args : args.slice(0, first);
}

function splitArgument(argument: string, hint: string): [name: string, value: string | undefined] {
  if (!argument.startsWith("--") || argument === "--") {
    throw new UsageError(`given '${argument}', expected a flag, as in --http-port=8000${hint}`);
  }
  const equals = argument.indexOf("=");
  const name = argument.slice(2, equals === -1 ? undefined : equals);
  if (findFlag(name) === undefined) throw unknownFlag(name);
  return [name, equals === -1 ? undefined : argument.slice(equals + 1)];
}

/** The next argument if it is this flag's value; undefined for a boolean that stands alone. */
function followingValue(name: string, next: string | undefined): string | undefined {
  if (findFlag(name)?.type === boolean) {
    return next !== undefined && boolean.parse(next) !== undefined ? next : undefined;
  }
  if (next === undefined) throw new UsageError(`--${name}: given nothing, expected a value`);
  return next;
}

function unknownFlag(name: string): UsageError {
  const nearest = nearestName(name, Object.keys(flagTable));
  const hint = nearest === undefined ? "see tidepool serve --help" : `did you mean --${nearest}?`;
  return new UsageError(`unknown flag --${name}; ${hint}`);
}
