import { describe, expect, it } from "vitest";
import { parseInfer } from "../../protocol/infer-json.ts";
import { noParameters } from "../../protocol/parameters.ts";

const target = { modelName: "m", modelVersion: "", forwarded: noParameters };
const encoder = new TextEncoder();

function head(size: number, more: object = {}): Uint8Array {
  const parameters = { binary_data_size: size };
  const input = { name: "I", datatype: "UINT8", shape: [size], parameters };
  return encoder.encode(JSON.stringify({ inputs: [input], ...more }));
}

/** A request whose first tensor stands in the JSON itself. */
function mixedHead(value: number): Uint8Array {
  const data = { name: "J", datatype: "UINT8", shape: [1], data: [value] };
  const binary = { name: "I", datatype: "UINT8", shape: [1], parameters: { binary_data_size: 1 } };
  return encoder.encode(JSON.stringify({ inputs: [data, binary] }));
}

describe("RememberedHeads", () => {
  it("gives a known head the tensors of its own tail and the target of its own request", () => {
    const first = parseInfer(head(3), Uint8Array.of(1, 2, 3), target);
    const other = { modelName: "n", modelVersion: "2", forwarded: noParameters };
    const second = parseInfer(head(3), Uint8Array.of(4, 5, 6), other);
    expect([...(first.request.inputs[0]?.bytes ?? [])]).toEqual([1, 2, 3]);
    expect([...(second.request.inputs[0]?.bytes ?? [])]).toEqual([4, 5, 6]);
    expect(second.request).toMatchObject({ modelName: "n", modelVersion: "2" });
    expect(second.request.inputs[0]).toMatchObject({ name: "I", datatype: "UINT8", shape: [3] });
  });

  it("keeps what the head says beside its tensors", () => {
    const more = {
      parameters: { binary_data_output: true, priority: 2, timeout: 7, custom: "x" },
    };
    const [first, second] = [0, 1].map(() => parseInfer(head(1, more), Uint8Array.of(9), target));
    expect(second).toEqual(first);
    expect(second?.binaryOutputs).toBe("all");
    expect(second?.request).toMatchObject({ priority: 2, timeoutMicroseconds: 7 });
  });

  it("refuses a tail of another size with the words of a new head", () => {
    parseInfer(head(4), new Uint8Array(4), target);
    expect(() => parseInfer(head(4), new Uint8Array(3), target)).toThrow(
      "unexpected size for input 'I', expecting 1 additional bytes for model 'm'",
    );
    expect(() => parseInfer(head(4), new Uint8Array(5), target)).toThrow(
      "unexpected additional input data for model 'm'",
    );
  });

  it("does not take JSON data of one request for that of the next", () => {
    for (const value of [1, 2, 1]) {
      const { request } = parseInfer(mixedHead(value), Uint8Array.of(7), target);
      expect(request.inputs.map(({ bytes }) => bytes[0])).toEqual([value, 7]);
    }
  });

  it("never mixes forwarded headers of requests with equal heads", () => {
    const forwarded = new Map([["tenant", "a"]]);
    parseInfer(head(2), new Uint8Array(2), target);
    const { request } = parseInfer(head(2), new Uint8Array(2), { ...target, forwarded });
    expect(request.parameters.get("tenant")).toBe("a");
    expect(parseInfer(head(2), new Uint8Array(2), target).request.parameters.size).toBe(0);
  });
});
