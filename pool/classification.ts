import { joinBytesElements } from "../protocol/bytes-tensor.ts";
import { byteSize, type Datatype } from "../protocol/datatype.ts";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { InferenceResponse } from "../protocol/inference.ts";
import type { Tensor } from "../protocol/tensor.ts";
import type { ValidInferenceRequest } from "../protocol/valid-request.ts";
import type { Labels } from "./labels.ts";
import type { PendingRequest, ResponseSink, Scheduler } from "../serving/scheduler.ts";

const maxClasses = 65_536;

/** The same scheduler, answering with classes where a request asks for them; the others pay one glance for it. */
export function withClassification(scheduler: Scheduler, labels: Labels): Scheduler {
  return {
    enqueue(pending) {
      const wanted = pending.request.outputs.some(({ classification }) => classification);
      scheduler.enqueue(wanted ? { ...pending, sink: classifying(pending, labels) } : pending);
    },
    get inflight() {
      return scheduler.inflight;
    },
    stop: () => scheduler.stop(),
  };
}

function classifying({ request, sink }: PendingRequest, labels: Labels): ResponseSink {
  let failed = false;
  return {
    send(response, final) {
      if (failed) return;
      try {
        sink.send(response && classify(request, response, labels), final);
      } catch (error) {
        failed = true;
        sink.fail(InferenceError.from(error));
      }
    },
    get room() {
      return sink.room;
    },
    fail: (error) => sink.fail(error),
  };
}

/**
 * Replaces each output that is asked for with `classification: N` by its N greatest values as strings
 * `<value>:<index>[:<label>]`, greatest first, item by item of a batch. Throws INVALID_ARG for a datatype without an order.
 */
function classify(
  request: ValidInferenceRequest,
  response: InferenceResponse,
  labels: Labels,
): InferenceResponse {
  const wanted = new Map(request.outputs.map(({ name, classification }) => [name, classification]));
  const batching = request.model.config.maxBatchSize > 0;
  const outputs = response.outputs.map((output) => {
    const classes = wanted.get(output.name);
    return classes
      ? classStrings(output, { classes, batching, labels: labels.get(output.name) ?? [] })
      : output;
  });
  return { ...response, outputs };
}

interface Classification {
  readonly classes: number;
  readonly batching: boolean;
  readonly labels: readonly string[];
}

function classStrings(output: Tensor, { classes, batching, labels }: Classification): Tensor {
  const values = valuesOf(output);
  const items = batching ? (output.shape[0] ?? 0) : 1;
  const size = items === 0 ? 0 : values.length / items;
  const kept = Math.min(classes, size);
  if (kept * items > maxClasses) {
    throw new InferenceError(
      StatusCode.InvalidArg,
      `output '${output.name}': classification gives ${kept * items} classes, expected at most ${maxClasses}`,
    );
  }
  const textOf = output.datatype.startsWith("FP") ? decimalText : String;
  const strings: Uint8Array[] = [];
  for (let item = 0; item < items; item++) {
    const ofItem = values.subarray(item * size, (item + 1) * size);
    for (const index of greatest(ofItem, kept)) {
      const label = labels[index] ? `:${labels[index]}` : "";
      strings.push(utf8.encode(`${textOf(ofItem[index])}:${index}${label}`));
    }
  }
  const shape = batching ? [items, kept] : [kept];
  return { name: output.name, datatype: "BYTES", shape, bytes: joinBytesElements(strings) };
}

const utf8 = new TextEncoder();

type Values = Exclude<NodeJS.TypedArray, Uint8ClampedArray | Float16Array>;

/** The datatypes whose values can be put in order; the reference knows no others. */
const arrays: Partial<
  Record<Datatype, new (buffer: ArrayBufferLike, offset: number, length: number) => Values>
> = {
  UINT8: Uint8Array,
  UINT16: Uint16Array,
  UINT32: Uint32Array,
  UINT64: BigUint64Array,
  INT8: Int8Array,
  INT16: Int16Array,
  INT32: Int32Array,
  INT64: BigInt64Array,
  FP32: Float32Array,
  FP64: Float64Array,
};

function valuesOf({ datatype, bytes }: Tensor): Values {
  const array = arrays[datatype];
  if (!array) {
    const message = `class result not available for output due to unsupported type '${datatype}'`;
    throw new InferenceError(StatusCode.InvalidArg, message);
  }
  // A typed array starts at a multiple of its element's size; 8 suits all. A slice of a Buffer would be no copy.
  const aligned = bytes.byteOffset % 8 === 0 ? bytes : new Uint8Array(bytes);
  return new array(aligned.buffer, aligned.byteOffset, aligned.byteLength / byteSize(datatype));
}

/** The indices of the greatest values, greatest first, equal ones by index; NaN counts as the least of all. */
function greatest(values: Values, count: number): number[] {
  const before = (a: number, b: number): number => compare(values[b], values[a]) || a - b;
  let best: number[] = [];
  let least: number | undefined;
  for (let index = 0; index < values.length; index++) {
    if (least !== undefined && compare(values[index], values[least]) <= 0) continue;
    best.push(index);
    if (best.length < 2 * count) continue;
    best = best.toSorted(before).slice(0, count);
    least = best.at(-1);
  }
  return best.toSorted(before).slice(0, count);
}

function compare(left: number | bigint | undefined, right: number | bigint | undefined): number {
  const a = Number.isNaN(left) ? -Infinity : (left ?? 0);
  const b = Number.isNaN(right) ? -Infinity : (right ?? 0);
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Six decimals and never an exponent, as C prints a `%f`. */
function decimalText(value: number | bigint | undefined): string {
  const number = Number(value);
  if (Number.isNaN(number)) return "nan";
  if (!Number.isFinite(number)) return number > 0 ? "inf" : "-inf";
  return Math.abs(number) < 1e21 ? number.toFixed(6) : `${BigInt(number)}.000000`;
}
