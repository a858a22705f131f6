/** Datatypes as the v2 protocol spells them; the model config spells them `TYPE_FP32`, and BYTES `TYPE_STRING`. */
export const datatypes = [
  "BOOL",
  "UINT8",
  "UINT16",
  "UINT32",
  "UINT64",
  "INT8",
  "INT16",
  "INT32",
  "INT64",
  "FP16",
  "FP32",
  "FP64",
  "BYTES",
  "BF16",
] as const;
export type Datatype = (typeof datatypes)[number];

const elementBytes: Record<Datatype, number> = {
  BOOL: 1,
  UINT8: 1,
  UINT16: 2,
  UINT32: 4,
  UINT64: 8,
  INT8: 1,
  INT16: 2,
  INT32: 4,
  INT64: 8,
  FP16: 2,
  FP32: 4,
  FP64: 8,
  BYTES: 0,
  BF16: 2,
};

/** True for a spelling of the v2 protocol. */
export function isDatatype(text: string): text is Datatype {
  return Object.hasOwn(elementBytes, text);
}

/** Bytes of one element; 0 for BYTES, whose elements carry their own length. */
export function byteSize(datatype: Datatype): number {
  return elementBytes[datatype];
}

/** The config's spelling (`TYPE_FP32`, `TYPE_STRING`) of a datatype. */
export function configDatatype(datatype: Datatype): string {
  return datatype === "BYTES" ? "TYPE_STRING" : `TYPE_${datatype}`;
}

/** The protocol's spelling of a config's `TYPE_…`, or undefined for TYPE_INVALID and the like. */
export function datatypeOfConfig(text: string): Datatype | undefined {
  if (text === "TYPE_STRING") return "BYTES";
  const bare = text.startsWith("TYPE_") ? text.slice(5) : "";
  return bare !== "BYTES" && isDatatype(bare) ? bare : undefined;
}
