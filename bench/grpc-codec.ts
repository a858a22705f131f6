import { inferenceRequest } from "../gateway/grpc/decode-request.ts";
import { encodeResponse } from "../gateway/grpc/encode-response.ts";
import { readRequest } from "../gateway/grpc/request-message.ts";
import type { InferenceResponse } from "../protocol/inference.ts";
import { noParameters } from "../protocol/parameters.ts";
import { messages } from "../repository/proto-files.ts";

/**
 * What the gRPC codec adds to a call: microseconds to decode a ModelInferRequest with one FP32 tensor and to encode
 * its response, beside protobufjs' reflection doing the same. Run it with `node bench/grpc-codec.ts`.
 */
export function grpcCodec(): void {
  for (const elements of [16, 4096, 1_000_000]) {
    const values = Buffer.alloc(4 * elements, 1);
    const input = { name: "INPUT", datatype: "FP32", shape: [1, elements] };
    const raw = requestBytes({ inputs: [input], rawInputContents: [values] });
    const floats = Array.from({ length: elements }, () => 1.5);
    const typed = requestBytes({ inputs: [{ ...input, contents: { fp32Contents: floats } }] });
    const rounds = Math.ceil(2_000_000 / (elements + 20));
    report(elements, "raw contents", rounds, () => ours(raw));
    report(elements, "typed contents", rounds, () => ours(typed));
    report(elements, "raw contents, reflection", rounds, () => reflection(raw));
  }
}

const requestType = messages().type("ModelInferRequest");
const responseType = messages().type("ModelInferResponse");

function ours(bytes: Buffer): number {
  const request = inferenceRequest(readRequest(bytes), noParameters);
  const response: InferenceResponse = {
    modelName: request.modelName,
    modelVersion: "1",
    id: request.id,
    outputs: request.inputs.map((tensor) => ({ ...tensor, name: "OUTPUT" })),
    parameters: noParameters,
  };
  return encodeResponse(response).length;
}

function reflection(bytes: Buffer): number {
  const { modelName, id, inputs, rawInputContents } = requestType.toObject(
    requestType.decode(bytes),
  );
  const response = {
    modelName,
    modelVersion: "1",
    id,
    outputs: inputs,
    rawOutputContents: rawInputContents,
  };
  return responseType.encode(responseType.fromObject(response)).finish().length;
}

function requestBytes(fields: object): Buffer {
  const message = requestType.fromObject({ modelName: "identity_fp32", id: "1234", ...fields });
  return Buffer.from(requestType.encode(message).finish());
}

/** Prints the fastest of ten runs of so many rounds. */
function report(elements: number, what: string, rounds: number, round: () => number): void {
  let best = Infinity;
  for (let run = 0; run < 10; run += 1) {
    const start = performance.now();
    for (let i = 0; i < rounds; i += 1) round();
    best = Math.min(best, (performance.now() - start) / rounds);
  }
  const microseconds = (best * 1000).toFixed(2).padStart(9);
  process.stdout.write(`[1,${elements}] ${what.padEnd(26)} ${microseconds} µs\n`);
}

grpcCodec();
