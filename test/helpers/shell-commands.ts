import { readFileSync } from "node:fs";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "../..");

/** The commands in the shell blocks of a page; a quoted text may run over several lines. */
export function commandsOf(page: string): readonly string[] {
  const text = readFileSync(path.join(root, page), "utf8");
  return [...text.matchAll(/```sh\n(?<block>.*?)```/gsu)]
    .flatMap(({ groups }) => [...(groups?.["block"] ?? "").matchAll(/(?:'[^']*'|[^'\n])+/gu)])
    .map(([command]) => command.trim());
}
