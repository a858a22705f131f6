import type { Readable } from "node:stream";

const longestLine = 8192;

/** Cuts what a process prints into lines; a line without an end is cut where it becomes too long to keep. */
export function onLines(stream: Readable, tell: (line: string) => void): void {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) tellPieces(line, tell);
    while (rest.length > longestLine) {
      tell(rest.slice(0, longestLine));
      rest = rest.slice(longestLine);
    }
  });
  stream.on("close", () => {
    if (rest !== "") tell(rest);
  });
  stream.on("error", () => {});
}

function tellPieces(line: string, tell: (line: string) => void): void {
  for (let start = 0; start === 0 || start < line.length; start += longestLine)
    tell(line.slice(start, start + longestLine));
}
