import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { datatypes } from "../../protocol/datatype.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { InferenceRequest, InferenceResponse } from "../../protocol/inference.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import {
  decodeReplies,
  decodeReply,
  encodeReplies,
  encodeReply,
  type Reply,
} from "../../queue/reply-frame.ts";
import {
  decodeRequest,
  decodeRequests,
  encodeRequest,
  encodeRequests,
} from "../../queue/request-frame.ts";

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

type Sent = Parameters<typeof encodeRequest>[0];
const differences = [
  "modelVersion",
  "id",
  "inputs",
  "outputs",
  "parameters",
  "priority",
  "timeoutMicroseconds",
] as const;
const plain: InferenceRequest = {
  modelName: "m",
  modelVersion: "",
  id: "",
  inputs: [],
  outputs: [],
  parameters: new Map(),
  priority: 0,
  timeoutMicroseconds: 0,
};

function like(id: string, first: number): Sent {
  const inputs = [{ ...tensorOf(first), shape: [1, 2] }];
  return { receivedAt: first, request: { ...plain, id, inputs } };
}

function tensorOf(first: number): Tensor {
  return { name: "IN", datatype: "UINT8", shape: [2], bytes: Buffer.from([first, 0]) };
}

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

describe("encodeRequests", () => {
  const caller = fc.record({
    id: text,
    instances: text,
    modelName: text,
    modelVersion: text,
    depth: fc.nat(),
  });
  const rare = { trace: text, callers: fc.array(caller) };
  const sent = fc.record(
    { request, receivedAt: fc.nat(), ...rare },
    { requiredKeys: ["request", "receivedAt"] },
  );

  it("keeps what is said of all, and each request under its index", () => {
    fc.assert(
      fc.property(fc.array(sent), (all) => {
        const given = new Map(
          all.map((one, i) => [i * 2, { ...one, request: { ...one.request, modelName: "m" } }]),
        );
        const { bundle, claimed } = encodeRequests({ tenant: "t" }, given);
        expect(claimed.size).toBe(0);
        expect(decodeRequests(bundle, "m")).toEqual({
          head: { tenant: "t" },
          requests: given,
          claimed: [],
        });
      }),
    );
  });

  it("keeps what differs only a little", () => {
    fc.assert(
      fc.property(sent, request, fc.constantFrom(...differences), (one, other, difference) => {
        const changed = { ...one.request, [difference]: other[difference] };
        const given = [one, { ...one, request: changed }, one];
        const { bundle } = encodeRequests({}, given.entries());
        const read = decodeRequests(bundle, one.request.modelName);
        expect([...read.requests.values()]).toEqual(given);
      }),
    );
  });

  it("writes the heads of like requests once", () => {
    const given = [like("", 1), like("x", 2), like("", 3)];
    const { bundle } = encodeRequests({}, given.entries());
    expect(bundle.toString("latin1").match(/"IN"/gu)).toHaveLength(1);
    expect([...decodeRequests(bundle, "m").requests.values()]).toEqual(given);
  });

  it("leaves out what is large, and says where", () => {
    const large = { ...tensorOf(0), bytes: Buffer.alloc(1024 * 1024 + 1) };
    const given = [tensorOf(1), large, tensorOf(2)].map((input, i) => {
      return [i, { receivedAt: i, request: { ...plain, inputs: [input] } }] as const;
    });
    const { bundle, claimed } = encodeRequests({}, given);
    expect(bundle.byteLength).toBeLessThan(1000);
    const read = decodeRequests(bundle, "m");
    expect([...read.requests.keys()]).toEqual([0, 2]);
    expect(read.claimed).toEqual([1]);
    const payload = claimed.get(1) ?? Buffer.alloc(0);
    expect(decodeRequest(payload, "m")).toEqual(given[1]?.[1]);
  });

  it("counts an id and parameters when it looks for what is large", () => {
    const long = "x".repeat(1024 * 1024 + 1);
    const given = [{ id: long }, { parameters: new Map([["p", long]]) }].map((more, i) => {
      return [i, { receivedAt: i, request: { ...plain, ...more } }] as const;
    });
    expect(encodeRequests({}, given).claimed.size).toBe(2);
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
        expect(read?.outcome).toMatchObject({
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

describe("encodeReplies", () => {
  const reply = fc.record({
    envelope: fc.constantFrom("a", "b"),
    index: fc.nat(),
    number: fc.nat(),
    final: fc.boolean(),
    outcome: response,
  });

  it("keeps all replies and their order, claims among them", () => {
    const claim = fc.record({ claim: text });
    fc.assert(
      fc.property(fc.array(fc.oneof(reply, claim)), (given) => {
        expect(encodeReplies(given).flatMap(decodeReplies)).toEqual(given);
      }),
    );
  });

  it("writes the heads of like replies once", () => {
    const given = [1, 2, 3].map((first) => replyWith(first, tensorOf(first)));
    const [bundle = Buffer.alloc(0), ...more] = encodeReplies(given);
    expect(more).toEqual([]);
    expect(bundle.toString("latin1").match(/"IN"/gu)).toHaveLength(1);
    expect(decodeReplies(bundle)).toEqual(given);
  });

  it("bounds the bytes of a bundle", () => {
    const tensorOfMuch = { ...tensorOf(0), bytes: Buffer.alloc(900_000) };
    const given = Array.from({ length: 20 }, (_, index) => replyWith(index, tensorOfMuch));
    const sizes = encodeReplies(given).map((bundle) => decodeReplies(bundle).length);
    expect(sizes).toEqual([18, 2]);
  });
});

function replyWith(index: number, output: Tensor): Reply {
  const model = { modelName: "m", modelVersion: "1", id: "" };
  const outcome = { ...model, outputs: [output], parameters: new Map() };
  return { envelope: "e", index, number: 0, final: true, outcome };
}
