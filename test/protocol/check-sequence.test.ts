import { describe, expect, it } from "vitest";
import { parseConfigPbtxt } from "../../repository/config-pbtxt.ts";
import { requestFor } from "../helpers/requests.ts";
import { modelInput, modelOutput, servedModel } from "../helpers/served-model.ts";

/** A model that is told correlation ids as this datatype. */
function modelWith(dataType?: string): ReturnType<typeof servedModel> {
  const control =
    dataType &&
    `control_input [ { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: ${dataType} } ] } ]`;
  const text = `sequence_batching { ${control ?? ""} }`;
  const { sequenceBatching } = parseConfigPbtxt(text, "config.pbtxt");
  return servedModel("m", {
    input: [modelInput("IN", "TYPE_FP32", [4])],
    output: [modelOutput("OUT", "TYPE_FP32", [4])],
    ...(sequenceBatching && { sequenceBatching }),
  });
}

function ask(dataType: string | undefined, id: bigint | string): void {
  requestFor(modelWith(dataType), [4], { id: "r", sequence: { id, start: true, end: false } });
}

describe("checkSequence", () => {
  it.each([
    ["TYPE_INT32", 7n],
    ["TYPE_UINT64", 7n],
    ["TYPE_STRING", "seven"],
    [undefined, 7n],
    [undefined, "seven"],
  ])("lets a model with a CORRID of %s have the id %s", (dataType, id) => {
    expect(() => ask(dataType, id)).not.toThrow();
  });

  it.each([
    ["TYPE_INT32", "seven", "BYTES", "INT32"],
    ["TYPE_STRING", 7n, "UINT64", "BYTES"],
  ])("refuses to tell a CORRID of %s the id %s", (dataType, id, given, expected) => {
    expect(() => ask(dataType, id)).toThrow(
      `[request id: r] sequence batching control 'CORRID' data-type is '${given}', but model 'm' expects '${expected}'`,
    );
  });

  it("leaves it to the scheduler to ask for an id where there is none", () => {
    expect(() => ask("TYPE_STRING", 0n)).not.toThrow();
  });

  it("bounds the bytes of an id", () => {
    expect(() => ask(undefined, "é".repeat(64))).not.toThrow();
    expect(() => ask(undefined, "é".repeat(65))).toThrow(
      "string correlation ID cannot be longer than 128 characters",
    );
  });
});
