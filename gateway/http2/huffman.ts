import { codeLengths } from "./hpack-tables.ts";

/** Ends a text of codes, and must not stand in one. */
const endSymbol = 256;

/** Nodes of the tree by two: where a 0 and a 1 lead; a leaf is the symbol with all bits turned. */
const tree = new Int16Array(2 * codeLengths.length);

let used = 1;
let code = 0;
let length = 0;
// Codes of one length follow each other in the order of their symbols, and begin where the shorter ones ended.
for (const symbol of [...codeLengths.keys()].toSorted(byLength)) {
  const bits = codeLengths[symbol] ?? 0;
  code <<= bits - length;
  length = bits;
  plant(symbol, code, bits);
  code++;
}

function byLength(a: number, b: number): number {
  return (codeLengths[a] ?? 0) - (codeLengths[b] ?? 0) || a - b;
}

function plant(symbol: number, bits: number, count: number): void {
  let node = 0;
  for (let i = count - 1; i > 0; i--) {
    const at = 2 * node + ((bits >> i) & 1);
    if (tree[at] === 0) tree[at] = used++;
    node = tree[at] ?? 0;
  }
  tree[2 * node + (bits & 1)] = ~symbol;
}

/** The text of Huffman codes (RFC 7541, section 5.2), a character a byte; undefined where they are no text. */
export function decodeHuffman(bytes: Buffer): string | undefined {
  // The shortest code has five bits.
  const text = Buffer.allocUnsafe(Math.ceil((bytes.length * 8) / 5));
  let size = 0;
  let node = 0;
  /** Bits since the last symbol, and whether all of them were 1. */
  let open = 0;
  let ones = true;
  for (const byte of bytes) {
    for (let i = 7; i >= 0; i--) {
      const bit = (byte >> i) & 1;
      const next = tree[2 * node + bit] ?? 0;
      open++;
      ones &&= bit === 1;
      if (next >= 0) {
        node = next;
        continue;
      }
      if (~next === endSymbol) return undefined;
      size = text.writeUInt8(~next, size);
      node = 0;
      open = 0;
      ones = true;
    }
  }
  // What fills the last byte is the beginning of the end's code.
  return open < 8 && ones ? text.toString("latin1", 0, size) : undefined;
}
