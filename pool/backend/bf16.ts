/**
 * Widens BF16, which is the upper half of an FP32, to numbers for runtimes that lack it; always exact.
 * The bytes must lie on an even address.
 */
export function widenBf16(bytes: Uint8Array): Float32Array {
  const halves = new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2);
  const bits = new Uint32Array(halves.length);
  for (let i = 0; i < halves.length; i++) bits[i] = (halves[i] ?? 0) << 16;
  return new Float32Array(bits.buffer);
}

/** The way back for numbers that were BF16 before: their lower halves are zero, so nothing is rounded. */
export function narrowToBf16(numbers: NodeJS.ArrayBufferView): Uint8Array {
  const bits = new Uint32Array(numbers.buffer, numbers.byteOffset, numbers.byteLength / 4);
  const halves = new Uint16Array(bits.length);
  for (let i = 0; i < bits.length; i++) halves[i] = (bits[i] ?? 0) >>> 16;
  return new Uint8Array(halves.buffer);
}
