import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";

/** A longer line comes in pieces, so that a process which never ends one cannot fill our memory. */
const longestLine = 16_384;

/** Hands on what a process writes, line by line. */
export function forEachLine(stream: Readable, onLine: (line: string) => void): void {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  const take = (text: string): void => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) onLine(line);
    while (rest.length > longestLine) {
      onLine(rest.slice(0, longestLine));
      rest = rest.slice(longestLine);
    }
  };
  stream.on("data", (bytes: Buffer) => take(decoder.write(bytes)));
  stream.on("end", () => {
    take(decoder.end());
    if (rest) onLine(rest);
  });
}
