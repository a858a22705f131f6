import { bytesElements } from "../protocol/bytes-tensor.ts";
import type { Tensor } from "../protocol/tensor.ts";
import { jsonElements } from "../protocol/tensor-to-json.ts";

/** The elements of a tensor as a trace tells them: in a row with commas between them, numbers as C++ streams print them. */
export function traceElements(tensor: Tensor): string {
  const { datatype, bytes } = tensor;
  if (datatype === "BYTES") return texts(bytes).join(",");
  if (datatype === "BOOL") return Array.from(bytes, (byte) => (byte === 0 ? 0 : 1)).join(",");
  if (bytes.length === 0 || !isFloat.test(datatype)) return jsonElements(tensor);
  return jsonElements(tensor)
    .split(",")
    .map((text) => general(Number(text)))
    .join(",");
}

const isFloat = /^B?FP?\d/u;
const decoder = new TextDecoder();

function texts(bytes: Uint8Array): string[] {
  return Array.from(bytesElements(bytes), (element) => JSON.stringify(decoder.decode(element)));
}

/** Six digits, as `%g` writes them. */
function general(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value < 0 ? "-inf" : "inf";
  const [digits = "", power = "0"] = value.toExponential(5).split("e");
  const exponent = Number(power);
  if (exponent >= -4 && exponent < 6) return short(value.toFixed(5 - exponent));
  const sign = exponent < 0 ? "-" : "+";
  return `${short(digits)}e${sign}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

function short(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/u, "") : text;
}
