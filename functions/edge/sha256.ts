const encoder = new TextEncoder();

/** SHA-256 over pieces that follow each other, in hexadecimal; a text stands for its UTF-8. */
export async function sha256(pieces: readonly (string | Uint8Array)[]): Promise<string> {
  const all = pieces.map((piece) => (typeof piece === "string" ? encoder.encode(piece) : piece));
  return hex(await crypto.subtle.digest("SHA-256", joined(all)));
}

export function hex(bytes: ArrayBuffer): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const [first = new Uint8Array(), ...others] = pieces;
  if (others.length === 0) return first;
  const whole = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
