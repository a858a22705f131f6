import type { Parameters, ParameterValue } from "../../../protocol/parameters.ts";
import type { PendingRequest } from "../../../serving/scheduler.ts";

const startFlag = 1;
const endFlag = 2;

/**
 * What a process is told of a request, as JSON: everything that a model may ask it for.
 *
 * @param number by which the process answers
 * @param tensors JSON
 */
export function requestHead(
  number: number,
  { request, call }: PendingRequest,
  tensors: string,
): string {
  const { id, sequence, timeoutMicroseconds, parameters, outputs } = request;
  const flags = (sequence?.start ? startFlag : 0) + (sequence?.end ? endFlag : 0);
  const correlation =
    typeof sequence?.id === "string" ? JSON.stringify(sequence.id) : `${sequence?.id ?? 0}`;
  const wanted = outputs.length === 0 ? "null" : JSON.stringify(outputs.map(({ name }) => name));
  const trace =
    call.traceparent === undefined
      ? "null"
      : JSON.stringify(JSON.stringify({ traceparent: call.traceparent }));
  return `[${number},${JSON.stringify(id)},${correlation},${flags},${timeoutMicroseconds},${parametersJson(parameters)},${trace},${wanted},${tensors}]`;
}

/** A text with JSON in it, as a model reads the parameters; null for none. */
export function parametersJson(parameters: Parameters): string {
  if (parameters.size === 0) return "null";
  const members = [...parameters].map(
    ([name, value]) => `${JSON.stringify(name)}:${valueJson(value)}`,
  );
  return JSON.stringify(`{${members.join(",")}}`);
}

function valueJson(value: ParameterValue): string {
  if (typeof value === "bigint") return String(value);
  // A double stays one in the eyes of Python.
  if (Number.isInteger(value)) return `${value}.0`;
  return JSON.stringify(value);
}
