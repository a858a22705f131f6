import { isPathSegment } from "../../repository/model-name.ts";
import { modelPattern, type ModelPattern } from "../../protocol/model-pattern.ts";
import type { PoolDevice, PoolScaler } from "./pool.ts";

/** How a scalar of the pool file becomes a value. */
export interface FieldType<Value> {
  /** As errors name it, after "expected". */
  readonly expected: string;
  /** The value, or undefined when the scalar is none. */
  parse(given: unknown): Value | undefined;
}

/** A whole number within bounds, both included. */
export function wholeNumber(minimum: number, maximum: number): FieldType<number> {
  return {
    expected: `a whole number from ${minimum} to ${maximum}`,
    parse(given) {
      return Number.isInteger(given) ? numberWithin(given, minimum, maximum) : undefined;
    },
  };
}

/** Seconds within bounds, with or without a fraction, as milliseconds. */
export function seconds(minimum: number, maximum: number): FieldType<number> {
  return {
    expected: `a number of seconds from ${minimum} to ${maximum}`,
    parse(given) {
      const value = numberWithin(given, minimum, maximum);
      return value === undefined ? undefined : Math.round(value * 1000);
    },
  };
}

const mostMebibytes = 16 * 2 ** 20;

/** A size in MiB, as bytes. */
export const mebibytes: FieldType<number> = {
  expected: `a number of MiB from 1 to ${mostMebibytes}`,
  parse(given) {
    const value = numberWithin(given, 1, mostMebibytes);
    return value === undefined ? undefined : Math.round(value * 2 ** 20);
  },
};

/** The name of a pool: it becomes part of keys, labels and hostnames. */
export const poolName: FieldType<string> = {
  expected: "1 to 40 characters of a-z, 0-9 and '-', without a '-' at either end",
  parse: (given) => textOf(given, /^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$/u),
};

/** A pattern that some model's name can match. */
export const pattern: FieldType<ModelPattern> = {
  expected:
    "a model name in which '*' stands for any text, of at most 255 bytes, in quotes if it starts with '*'",
  parse: (given) =>
    typeof given === "string" && isPathSegment(given) ? modelPattern(given) : undefined,
};

/** Where a pool's instances run. */
export const device: FieldType<PoolDevice> = {
  expected: "auto, cpu, gpu or gpu:<id>",
  parse(given) {
    if (given === "auto" || given === "cpu" || given === "gpu") return { kind: given };
    const gpu = textOf(given, /^gpu:(?:0|[1-9]\d{0,2})$/u);
    return gpu === undefined ? undefined : { kind: "gpu", id: Number(gpu.slice("gpu:".length)) };
  },
};

/** A scaler that a word says all about. */
export const scalerWord: FieldType<PoolScaler> = {
  expected: "process, none, keda, or kubernetes with a namespace and a deployment",
  parse(given) {
    const known = given === "process" || given === "none" || given === "keda";
    return known ? { kind: given } : undefined;
  },
};

/** The name of an object of Kubernetes: it becomes part of a URL. */
export const kubernetesName: FieldType<string> = {
  expected: "1 to 63 characters of a-z, 0-9 and '-', without a '-' at either end",
  parse: (given) => textOf(given, /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/u),
};

function numberWithin(given: unknown, minimum: number, maximum: number): number | undefined {
  return typeof given === "number" && given >= minimum && given <= maximum ? given : undefined;
}

function textOf(given: unknown, form: RegExp): string | undefined {
  return typeof given === "string" && form.test(given) ? given : undefined;
}
