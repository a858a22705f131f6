import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { datatypes } from "../../protocol/datatype.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { InferenceRequest, InferenceResponse } from "../../protocol/inference.ts";
import { decodeReply, encodeReply, type Reply } from "../../queue/reply-frame.ts";
import { decodeRequest, encodeRequest } from "../../queue/request-frame.ts";

// Any unit of UTF-16, halves of pairs included.
const text = fc.string({
  unit: fc.integer({ max: 0xffff }).map((code) => String.fromCharCode(code)),
});
const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array));
const tensor = fc.record({
  name: text,
  datatype: fc.constantFrom(...datatypes),
  shape: fc.array(fc.nat()),
  bytes,
});
const parameter = fc.oneof(
  fc.boolean(),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
  // Zero has lost its sign before: JSON has none.
  fc.double().map((number) => number + 0),
  text,
);
const parameters = fc.array(fc.tuple(text, parameter)).map((entries) => new Map(entries));
const sequence = fc.record({
  id: fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), text),
  start: fc.boolean(),
  end: fc.boolean(),
});
const request: fc.Arbitrary<InferenceRequest> = fc
  .record({
    modelName: text,
    modelVersion: text,
    id: text,
    inputs: fc.array(tensor),
    outputs: fc.array(
      fc.record({ name: text, classification: fc.nat() }, { requiredKeys: ["name"] }),
    ),
    parameters,
    priority: fc.nat(),
    timeoutMicroseconds: fc.nat(),
    sequence: fc.option(sequence, { nil: undefined }),
  })
  .map(({ sequence: own, ...rest }) => ({ ...rest, ...(own && { sequence: own }) }));
const response: fc.Arbitrary<InferenceResponse> = fc.record({
  modelName: text,
  modelVersion: text,
  id: text,
  outputs: fc.array(tensor),
  parameters,
});

describe("encodeRequest", () => {
  it("keeps every request as it is", () => {
    fc.assert(
      fc.property(request, fc.double({ noNaN: true, min: 0 }), (given, receivedAt) => {
        fc.pre(Number.isFinite(receivedAt));
        const sent = { request: given, receivedAt };
        expect(decodeRequest(encodeRequest(sent), given.modelName)).toEqual(sent);
      }),
    );
  });
});

describe("encodeReply", () => {
  const to = { envelope: text, index: fc.nat(), number: fc.nat() };

  it("keeps every response as it is, and whether more will come", () => {
    fc.assert(
      fc.property(fc.record({ ...to, final: fc.boolean(), outcome: response }), (reply) => {
        expect(decodeReply(encodeReply(reply))).toEqual(reply);
      }),
    );
  });

  it("keeps an error's code, text and time to wait, and nothing of its cause", () => {
    const wait = fc.oneof(fc.constant({}), fc.record({ retryAfterSeconds: fc.nat() }));
    const error = fc
      .tuple(fc.constantFrom(...Object.values(StatusCode)), text, wait)
      .map(([code, message, more]) => {
        return new InferenceError(code, message, { cause: new Error("secret"), ...more });
      });
    fc.assert(
      fc.property(fc.record({ ...to, outcome: error }), (reply) => {
        const frame = encodeReply({ ...reply, final: true });
        expect(frame.includes("secret")).toBe(false);
        const read = decodeReply(frame);
        expect(read).toEqual({ ...reply, final: true, outcome: expect.any(InferenceError) });
        expect("outcome" in read && read.outcome).toMatchObject({
          code: reply.outcome.code,
          message: reply.outcome.message,
          retryAfterSeconds: reply.outcome.retryAfterSeconds,
        });
      }),
    );
  });

  it("tells the end of a request without a further response", () => {
    const reply: Reply = { envelope: "e", index: 1, number: 2, final: true };
    expect(decodeReply(encodeReply(reply))).toEqual(reply);
  });
});
