import { flagsFromArguments } from "./arguments.ts";
import { environmentWarnings, flagsFromEnvironment } from "./environment.ts";
import { findFlag, flagTable } from "./flag-table.ts";
import { parseFlag } from "./flag-type.ts";
import type { Flag, WorkingFlag } from "./flag.ts";
import { UsageError } from "./usage-error.ts";

type Table = typeof flagTable;

type CamelCase<Name extends string> = Name extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

/** The value of every flag that works, by its name in camel case: `settings.httpPort`. */
export type Settings = {
  readonly [
    Name in keyof Table as Table[Name] extends WorkingFlag<infer _Value> ? CamelCase<Name> : never
  ]: Table[Name] extends WorkingFlag<infer Value> ? Value : never;
};

export interface ReadSettings {
  readonly settings: Settings;
  /** One line for each flag that was given and does not do what it says, and for each variable of no flag. */
  readonly warnings: readonly string[];
}

type Given = Map<string, readonly string[]>;

/**
 * The settings that command line and environment make together; the command line wins.
 * Throws a UsageError for unknown flags, values that do not fit, and flags that this server must refuse.
 */
export function readSettings(
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
): ReadSettings {
  const given = new Map([...flagsFromEnvironment(environment), ...flagsFromArguments(args)]);
  const warnings = [...environmentWarnings(environment)];
  for (const [name, texts] of given) {
    const flag = findFlag(name);
    if (flag) applyStatus(name, flag, texts, { given, warnings });
  }
  const settings: Record<string, unknown> = {};
  for (const [name, flag] of Object.entries<Flag>(flagTable)) {
    if (isWorking(flag)) settings[camelCase(name)] = valueOf(name, flag, given);
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- filled from the table the type is made of
  return { settings: settings as Settings, warnings };
}

function applyStatus(
  name: string,
  { type, status }: Flag,
  texts: readonly string[],
  { given, warnings }: { given: Given; warnings: string[] },
): void {
  for (const text of texts) parseFlag(name, type, text);
  if (status.kind === "no effect") {
    warnings.push(`--${name} has no effect here: ${status.why}`);
  } else if (status.kind === "refused") {
    const asked = texts.map((text) => String(type.parse(text)));
    if (asked.some((text) => text !== status.unless)) {
      throw new UsageError(`--${name} is refused: ${status.why}`);
    }
  } else if (status.kind === "replaced") {
    warnings.push(`--${name} is an old spelling of --${status.by}`);
    given.set(status.by, [...(given.get(status.by) ?? []), ...texts.map(status.translate)]);
  }
}

function isWorking(flag: Flag): flag is WorkingFlag<unknown> {
  return flag.status.kind === "works";
}

function valueOf(name: string, flag: WorkingFlag<unknown>, given: Given): unknown {
  const texts = given.get(name);
  if (texts === undefined || texts.length === 0) return flag.default;
  return flag.read(name, texts);
}

function camelCase(name: string): string {
  return name.replaceAll(/-(?<letter>[a-z0-9])/gu, (_, letter: string) => letter.toUpperCase());
}
