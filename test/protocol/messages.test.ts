import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import protobuf from "protobufjs";
import { parseMessages } from "../../protocol/messages.ts";
import { messages } from "../../repository/proto-files.ts";

describe("parseMessages", () => {
  it("finds a message of package inference by its bare name and others by their full one", () => {
    expect(messages().type("ModelInferRequest").fullName).toBe(".inference.ModelInferRequest");
    expect(messages().type("grpc.health.v1.HealthCheckRequest").name).toBe("HealthCheckRequest");
    expect(() => messages().type("NoSuchMessage")).toThrow("NoSuchMessage");
  });

  it("numbers the fields as the wire does", () => {
    const request = messages().type("ModelInferRequest");
    const bytes = request
      .encode(request.create({ modelName: "m", rawInputContents: [new Uint8Array([9])] }))
      .finish();
    expect([...bytes]).toEqual([0x0a, 1, 0x6d, 0x3a, 1, 9]);
  });

  it("packs repeated numbers", () => {
    const shape = messages().type("ModelTensorReshape");
    expect([...shape.encode(shape.create({ shape: [1, 2] })).finish()]).toEqual([0x0a, 2, 1, 2]);
  });

  it("declares the services with their streams", () => {
    const service = messages().root.lookupService("inference.GRPCInferenceService");
    expect(service.methodsArray).toHaveLength(20);
    const streaming = service.methodsArray.filter((method) => method.requestStream);
    expect(streaming.map(({ name }) => name)).toEqual(["ModelStreamInfer"]);
    expect(messages().root.lookupService("grpc.health.v1.Health").methods).toHaveProperty("Check");
  });

  it("names the line of a mistake in a proto file", () => {
    expect(() => parseMessages(['syntax = "proto3";\nmessage A { string b = ; }'])).toThrow(
      "line 2",
    );
  });

  it("gives the model config exactly the fields of the interface", () => {
    const source = readFileSync(new URL("../../protocol/model-config.ts", import.meta.url), "utf8");
    const declared = new Set([...source.matchAll(/readonly (\w+)\??:/g)].map(([, name]) => name));
    expect(fieldNames(messages().type("ModelConfig"))).toEqual(declared);
  });
});

function fieldNames(type: protobuf.Type, found = new Set<string>()): Set<string> {
  for (const field of type.fieldsArray) {
    found.add(field.name);
    const { resolvedType } = field.resolve();
    if (resolvedType instanceof protobuf.Type) fieldNames(resolvedType, found);
  }
  return found;
}
