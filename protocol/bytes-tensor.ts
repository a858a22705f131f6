/** The bytes of a BYTES tensor: each element is its length in 4 little-endian bytes, and then itself. */
export const lengthBytes = 4;

/** The length that stands at an offset, which must have 4 bytes left. */
export function readLength(bytes: Uint8Array, offset: number): number {
  return (
    ((bytes[offset] ?? 0) |
      ((bytes[offset + 1] ?? 0) << 8) |
      ((bytes[offset + 2] ?? 0) << 16) |
      ((bytes[offset + 3] ?? 0) << 24)) >>>
    0
  );
}

/** Where the elements of a well-formed tensor lie: each as a view on the given bytes. */
export function* bytesElements(bytes: Uint8Array): Generator<Uint8Array> {
  let offset = 0;
  while (offset + lengthBytes <= bytes.length) {
    const start = offset + lengthBytes;
    offset = start + readLength(bytes, offset);
    yield bytes.subarray(start, offset);
  }
}

/** One tensor from its elements. */
export function joinBytesElements(elements: readonly Uint8Array[]): Uint8Array {
  let size = 0;
  for (const element of elements) size += lengthBytes + element.length;
  const joined = new Uint8Array(size);
  const view = new DataView(joined.buffer);
  let offset = 0;
  for (const element of elements) {
    view.setUint32(offset, element.length, true);
    joined.set(element, offset + lengthBytes);
    offset += lengthBytes + element.length;
  }
  return joined;
}
