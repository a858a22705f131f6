interface Layout {
  readonly mantissaBits: number;
  readonly bias: number;
}

const half: Layout = { mantissaBits: 10, bias: 15 };
const brain: Layout = { mantissaBits: 7, bias: 127 };

/** The 16 bits of the FP16 number nearest to a double; ties go to the even one. */
export function fp16Bits(value: number): number {
  return encode(value, half);
}

/** The value of FP16 bits. */
export function fp16Value(bits: number): number {
  return decode(bits, half);
}

/** The 16 bits of the BF16 number nearest to a double; ties go to the even one. */
export function bf16Bits(value: number): number {
  return encode(value, brain);
}

/** The value of BF16 bits. */
export function bf16Value(bits: number): number {
  return decode(bits, brain);
}

function encode(value: number, { mantissaBits, bias }: Layout): number {
  const infinity = (2 * bias + 1) << mantissaBits;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  if (Number.isNaN(value)) return infinity | (1 << (mantissaBits - 1));
  const size = Math.abs(value);
  // From 2^(bias+1) on everything is infinite; asked first, because an infinite exponent cannot be shifted.
  if (size >= 2 ** (bias + 1)) return sign | infinity;
  const smallest = 1 - bias;
  const exponent = Math.max(Math.floor(Math.log2(size)), smallest);
  const mantissa = roundToEven(size * 2 ** (mantissaBits - exponent));
  // The mantissa's leading one, or the carry of its rounding, adds itself to the exponent's field.
  const bits = ((exponent - smallest) << mantissaBits) + mantissa;
  return sign | Math.min(bits, infinity);
}

/** Adding 2^52 leaves a double no room for a fraction: the hardware rounds, half to even. */
function roundToEven(value: number): number {
  return value + 2 ** 52 - 2 ** 52;
}

function decode(bits: number, { mantissaBits, bias }: Layout): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const field = (bits & 0x7fff) >> mantissaBits;
  const mantissa = bits & ((1 << mantissaBits) - 1);
  if (field === 2 * bias + 1) return mantissa ? NaN : sign * Infinity;
  const leading = field === 0 ? 0 : 1 << mantissaBits;
  const exponent = Math.max(field, 1) - bias - mantissaBits;
  return sign * (leading + mantissa) * 2 ** exponent;
}
