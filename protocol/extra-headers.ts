const mostHeaders = 32;
/** A name of HTTP, and a value of visible ASCII with blanks in it. */
const pair = /^(?<name>[\w!#$%&'*+.^`|~-]{1,128}):\s*(?<value>[!-~](?:[ -~]{0,8190}[!-~])?)$/u;
/** They say how the request itself is to be read. */
const ownNames: ReadonlySet<string> = new Set([
  "connection",
  "content-digest",
  "content-encoding",
  "content-length",
  "content-type",
  "expect",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/**
 * Headers that a server wants of its callers beside a key, as `name: value` pairs, one a line or with `;` between them;
 * names in lower case. Throws for what is none, without a word of it: values are secrets.
 *
 * @param variable what the text is from
 */
export function extraHeaders(variable: string, text: string): Readonly<Record<string, string>> {
  const lines = text.split(/[;\r\n]/u).map((line) => line.trim());
  const pairs = lines.filter((line) => line !== "");
  if (pairs.length > mostHeaders)
    throw new Error(`${variable}: given ${pairs.length} headers, expected at most ${mostHeaders}`);
  return Object.fromEntries(
    pairs.map((one, at) => {
      const { name = "", value = "" } = pair.exec(one)?.groups ?? {};
      const lower = name.toLowerCase();
      if (name !== "" && !ownNames.has(lower)) return [lower, value];
      const given = name === "" ? "no pair" : `'${lower}', which is not to be set`;
      const expected = "name: value pairs, one a line or with ';' between them";
      throw new Error(`${variable}: given ${given} at place ${at + 1}, expected ${expected}`);
    }),
  );
}
