import path from "node:path";

/**
 * The command line of another command of this program, which gets the flags that this one was given and some more; of a
 * flag with one value the last counts.
 */
export function childCommand(
  command: string,
  given: readonly string[],
  more: readonly string[],
): { readonly command: string; readonly args: readonly string[] } {
  const program = path.join(import.meta.dirname, "main.ts");
  // Whoever starts it ends it through its standard input, even when killed.
  return {
    command: process.execPath,
    args: [program, command, ...given, ...more, "--end-with-stdin"],
  };
}
