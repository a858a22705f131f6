import { describe, expect, it } from "vitest";
import { collect, type Fields } from "../helpers/grpc-client.ts";
import { eventually } from "../helpers/eventually.ts";
import { errorOf, type Answer } from "../helpers/http-client.ts";
import {
  controlsConfig,
  controlsModel,
  namedConfig,
  namedModel,
  sumConfig,
  sumModel,
} from "../helpers/sequence-models.ts";
import { serving } from "../helpers/serving.ts";

interface Flags {
  readonly id?: number | string;
  readonly start?: boolean;
  readonly end?: boolean;
}

const body = (value: number, { id, start, end }: Flags, more: object = {}): object => ({
  inputs: [{ name: "IN", datatype: "FP32", shape: [1, 1], data: [value] }],
  parameters: { sequence_id: id, sequence_start: start, sequence_end: end, ...more },
});

/** The first element of each output by its name. */
function outputsOf(answer: Answer): unknown {
  expect(answer).toMatchObject({ status: 200 });
  const outputs: { name: string; data: unknown[] }[] = JSON.parse(answer.text).outputs;
  return Object.fromEntries(outputs.map(({ name, data }) => [name, data[0]]));
}

function message(modelName: string, value: number, { id, start, end }: Flags): Fields {
  return {
    modelName,
    id: String(value),
    inputs: [{ name: "IN", datatype: "FP32", shape: [1, 1], contents: { fp32Contents: [value] } }],
    outputs: [{ name: "OUT" }],
    parameters: {
      ...(id !== undefined && {
        sequence_id: typeof id === "string" ? { stringParam: id } : { int64Param: id },
      }),
      ...(start && { sequence_start: { boolParam: true } }),
      ...(end && { sequence_end: { boolParam: true } }),
    },
  };
}

const floatOf = (raw: Buffer): number => raw.readFloatLE(0);

describe("a model with sequence_batching", () => {
  const oldest = "oldest { max_candidate_sequences: 8 }";
  const initialFile = 'data_type: TYPE_FP32 dims: [ 1 ] data_file: "hundred" name: "start"';
  const running = serving(
    (models) => {
      models.model("controls", { 1: controlsModel() }, controlsConfig);
      models.model("named", { 1: namedModel() }, namedConfig);
      models.model("direct", { 1: sumModel() }, sumConfig("direct {}"));
      models.model("oldest", { 1: sumModel() }, sumConfig(oldest));
      models.model(
        "late",
        { 1: sumModel() },
        sumConfig("", `initial_state [ { ${initialFile} } ]`),
      );
      models.write("late/initial_state/hundred", Buffer.from(new Float32Array([100]).buffer));
      const impatient = "max_sequence_idle_microseconds: 50000";
      models.model("hasty", { 1: namedModel() }, namedConfig.replace("{", `{ ${impatient}`));
      const single = "max_batch_size: 1 instance_group [{ count: 1 }] sequence_batching {";
      const patient = "max_sequence_idle_microseconds: 60000000";
      const named = namedConfig.slice(namedConfig.indexOf("{") + 1);
      models.model("single", { 1: namedModel() }, `${single} ${patient} ${named}`);
    },
    "--model-control-mode=explicit",
    "--load-model=*",
  );
  const infer = (model: string, value: number, flags: Flags, more?: object): Promise<Answer> =>
    running.http.infer(model, body(value, flags, more));
  const sum = async (model: string, value: number, flags: Flags): Promise<unknown> =>
    outputsOf(await infer(model, value, flags));

  it("is told where in its sequence a request stands", async () => {
    const seen = { OUT: 1.5, ID: 42, WAS_READY: true };
    expect(outputsOf(await infer("controls", 1.5, { id: 42, start: true }))).toEqual({
      ...seen,
      STARTED: 7,
      ENDED: -1,
    });
    expect(outputsOf(await infer("controls", 1.5, { id: 42 }))).toEqual({
      ...seen,
      STARTED: 0,
      ENDED: -1,
    });
    expect(outputsOf(await infer("controls", 1.5, { id: 42, end: true }))).toEqual({
      ...seen,
      STARTED: 0,
      ENDED: 1,
    });
  });

  it("is told a correlation id that is a text", async () => {
    const flags = { id: "grüße", start: true, end: true };
    expect(outputsOf(await infer("named", 1, flags))).toEqual({ OUT: 1, ID: "grüße" });
  });

  it("shows its clients no input that they cannot give", async () => {
    const { text } = await running.http.get("/v2/models/late");
    expect(JSON.parse(text)).toMatchObject({
      inputs: [{ name: "IN", datatype: "FP32", shape: [-1, 1] }],
      outputs: [{ name: "OUT", datatype: "FP32", shape: [-1, 1] }],
    });
    const request = body(1, { id: 1, start: true });
    const start = { name: "START", datatype: "INT32", shape: [1, 1], data: [1] };
    const inputs = [start, { name: "IN", datatype: "FP32", shape: [1, 1], data: [1] }];
    const refused = await running.http.infer("controls", { ...request, inputs });
    expect(errorOf(refused)).toContain("expected 1 inputs but got 2 inputs for model 'controls'");
  });

  it.each(["direct", "oldest"])("keeps the states of sequences apart when %s", async (model) => {
    const ids = Array.from({ length: 8 }, (_, i) => i + 1);
    const round = (flags: Omit<Flags, "id">): Promise<unknown[]> =>
      Promise.all(ids.map((id) => sum(model, id, { id, ...flags })));
    expect(await round({ start: true })).toEqual(ids.map((id) => ({ OUT: id })));
    expect(await round({})).toEqual(ids.map((id) => ({ OUT: 2 * id })));
    expect(await round({ end: true })).toEqual(ids.map((id) => ({ OUT: 3 * id })));
    expect(await round({ start: true, end: true })).toEqual(ids.map((id) => ({ OUT: id })));
  });

  it("begins with the state that lies in its folder", async () => {
    expect(await sum("late", 1, { id: "a", start: true })).toEqual({ OUT: 101 });
    expect(await sum("late", 1, { id: "a", end: true })).toEqual({ OUT: 102 });
  });

  it("takes part in sequences over gRPC", async () => {
    const values = [
      await running.grpc.infer(message("oldest", 2, { id: 50, start: true })),
      await running.grpc.infer(message("oldest", 3, { id: 50 })),
      await running.grpc.infer(message("oldest", 4, { id: 50, end: true })),
    ];
    expect(values.map(({ rawOutputContents: [raw] }) => floatOf(raw))).toEqual([2, 5, 9]);
    const late = running.grpc.infer(message("oldest", 5, { id: 50 }));
    await expect(late).rejects.toMatchObject({
      details:
        "inference request for sequence 50 to model 'oldest' must specify the START flag on the first request of the sequence",
    });
  });

  it("takes part in several sequences over one gRPC stream", async () => {
    const stream = running.grpc.stream();
    const answers = collect(stream);
    for (const [value, flags] of [
      [1, { id: "x", start: true }],
      [100, { id: "y", start: true }],
      [2, { id: "x" }],
      [200, { id: "y", end: true }],
      [4, { id: "x", end: true }],
    ] as const) {
      stream.write(message("direct", value, flags));
    }
    stream.end();
    const sums = (await answers).map(({ inferResponse: { id, rawOutputContents } }) => [
      id,
      floatOf(rawOutputContents[0]),
    ]);
    expect(sums).toEqual([
      ["1", 1],
      ["100", 100],
      ["2", 3],
      ["200", 300],
      ["4", 7],
    ]);
  });

  it("refuses what is no part of a sequence", async () => {
    const refused = await Promise.all([
      infer("named", 1, { id: "unheard" }),
      infer("named", 1, { start: true }),
      infer("controls", 1, { id: "text", start: true }),
      infer("named", 1, { id: "x".repeat(129), start: true }),
    ]);
    expect(refused.map((answer) => [answer.status, errorOf(answer)])).toEqual([
      [
        400,
        "inference request for sequence unheard to model 'named' must specify the START flag on the first request of the sequence",
      ],
      [
        400,
        "inference request to model 'named' must specify a non-zero or non-empty correlation ID",
      ],
      [
        400,
        "[request id: <id_unknown>] sequence batching control 'CORRID' data-type is 'BYTES', but model 'controls' expects 'INT64'",
      ],
      [501, "string correlation ID cannot be longer than 128 characters"],
    ]);
  });

  it("forgets a sequence that is idle for too long", async () => {
    await infer("hasty", 1, { id: "a", start: true });
    // Asking keeps it from being idle, so that each time has to be longer.
    let pause = 25;
    await eventually(async () => {
      pause *= 2;
      await new Promise((resolve) => setTimeout(resolve, pause));
      expect((await infer("hasty", 1, { id: "a" })).status).toBe(400);
    });
  });

  it("lets a sequence without a slot wait for one, as long as it may", async () => {
    await infer("single", 1, { id: "first", start: true });
    const expired = await infer("single", 1, { id: "second", start: true }, { timeout: 20_000 });
    expect([expired.status, errorOf(expired)]).toEqual([
      503,
      "timeout of the corresponding sequence has been expired",
    ]);
    const waiting = infer("single", 1, { id: "third", start: true, end: true });
    await infer("single", 1, { id: "first", end: true });
    expect(outputsOf(await waiting)).toEqual({ OUT: 1, ID: "third" });
  });

  it("is unloaded while a sequence is open, and knows it no longer when it is back", async () => {
    await infer("named", 1, { id: "open", start: true });
    await running.http.post("/v2/repository/models/named/unload");
    await eventually(async () => {
      const { text } = await running.http.post("/v2/repository/index");
      const index: { name: string; reason?: string }[] = JSON.parse(text);
      expect(index.find(({ name }) => name === "named")).toMatchObject({ reason: "unloaded" });
    });
    await running.http.post("/v2/repository/models/named/load");
    expect((await infer("named", 1, { id: "open" })).status).toBe(400);
  });
});
