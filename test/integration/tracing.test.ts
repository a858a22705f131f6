import { readFileSync } from "node:fs";
import path from "node:path";
import { Metadata } from "@grpc/grpc-js";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { eventually } from "../helpers/eventually.ts";
import { collect, GrpcClient } from "../helpers/grpc-client.ts";
import { HttpClient } from "../helpers/http-client.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { testFolder } from "../helpers/onnx-version.ts";
import { type Span, type SpanCollector, startSpanCollector } from "../helpers/span-collector.ts";
import {
  startTidepool,
  type TidepoolCommand,
  type TidepoolProcess,
} from "../helpers/tidepool-process.ts";

const patience = { timeout: 60_000 };

let models: ModelDirectory;
let server: TidepoolProcess;
let http: HttpClient;
let grpc: GrpcClient;

const step = (model: string, input: string, output: string): string =>
  `{ model_name: "${model}" model_version: -1 input_map { key: "x" value: "${input}" } output_map { key: "y" value: "${output}" } }`;

beforeAll(() => {
  models = new ModelDirectory();
  models.model("one", { 1: addingModel(1) });
  models.model("two", { 1: addingModel(2) });
  const tensor = "data_type: TYPE_FP32 dims: [ 1 ]";
  models.write(
    "three/config.pbtxt",
    `name: "three" platform: "ensemble" input [{ name: "x" ${tensor} }] output [{ name: "y" ${tensor} }]
     ensemble_scheduling { step [ ${step("one", "x", "between")}, ${step("two", "between", "y")} ] }`,
  );
  models.write("three/1/empty", "");
});
afterAll(() => models.remove());
afterEach(async () => {
  http.close();
  grpc.close();
  await server.stop();
});

async function start(shape: TidepoolCommand, ...traceConfig: readonly string[]): Promise<void> {
  const flags = traceConfig.map((setting) => `--trace-config=${setting}`);
  server = await startTidepool([`--model-repository=${models.path}`, ...flags], shape);
  http = new HttpClient(server.http);
  grpc = new GrpcClient(server.grpc);
}

const message = (id: string) => ({
  modelName: "one",
  id,
  inputs: [{ name: "x", datatype: "FP32", shape: [1] }],
  rawInputContents: [Buffer.from(Float32Array.of(0).buffer)],
});

interface Entry {
  readonly id: number;
  readonly model_name?: string;
  readonly request_id?: string;
  readonly parent_id?: number;
  readonly timestamps?: readonly [{ readonly name: string; readonly ns: number }];
  readonly activity?: string;
  readonly tensor?: { readonly name: string; readonly data: string };
}

/** All that a trace file tells of one request or step, in a row, and the order of its moments. */
function told(entries: readonly Entry[], id: number | undefined) {
  const own = entries.filter((entry) => entry.id === id);
  const moments = own.flatMap(({ timestamps = [] }) => timestamps);
  const at = new Map(moments.map(({ name, ns }) => [name, ns]));
  const tensors = own.flatMap(({ activity, tensor }) =>
    tensor ? [`${activity} ${tensor.name}=${tensor.data}`] : [],
  );
  return { names: [...at.keys()].toSorted(), at, tensors };
}

/** What the reference's own file has for such requests. */
const modelMoments = [
  "COMPUTE_END",
  "COMPUTE_INPUT_END",
  "COMPUTE_OUTPUT_START",
  "COMPUTE_START",
  "QUEUE_START",
  "REQUEST_END",
  "REQUEST_START",
];
const httpMoments = ["HTTP_RECV_END", "HTTP_RECV_START", "HTTP_SEND_END", "HTTP_SEND_START"];
const grpcMoments = [
  "GRPC_SEND_END",
  "GRPC_SEND_START",
  "GRPC_WAITREAD_END",
  "GRPC_WAITREAD_START",
];
/** Each of these comes before the next, for every transport and every shape. */
const inOrder = [
  "QUEUE_START",
  "COMPUTE_START",
  "COMPUTE_INPUT_END",
  "COMPUTE_OUTPUT_START",
  "COMPUTE_END",
  "REQUEST_END",
];

describe.each(["serve", "dev"] as const)("file traces of tidepool %s", patience, (shape) => {
  it("have the moments, the tensors and the parents that the reference's have", async () => {
    const file = path.join(testFolder(), "t.json");
    await start(shape, `triton,file=${file}`, "rate=1", "level=TIMESTAMPS", "level=TENSORS");
    await http.infer("one", { ...addingBody, id: "over HTTP" });
    // What node need not parse goes another way than what it must.
    await http.infer("one", { ...addingBody, id: "with a header" }, { "X-Unusual": "1" });
    await grpc.infer(message("over gRPC"));
    const stream = grpc.stream();
    stream.write(message("over a stream"));
    stream.end();
    await collect(stream);
    await http.infer("three", { ...addingBody, id: "an ensemble" });
    await server.stop();
    const entries: Entry[] = JSON.parse(readFileSync(file, "utf8"));
    const ofRequest = (id: string, model: string): Entry | undefined =>
      entries.find((entry) => entry.request_id === id && entry.model_name === model);
    const ways = [
      ["over HTTP", httpMoments],
      ["with a header", httpMoments],
      ["over gRPC", grpcMoments],
      ["over a stream", grpcMoments],
    ] as const;
    for (const [id, edge] of ways) {
      const { names, at, tensors } = told(entries, ofRequest(id, "one")?.id);
      expect(names).toEqual([...modelMoments, ...edge, "INFER_RESPONSE_COMPLETE"].toSorted());
      expect(tensors).toEqual(["TENSOR_QUEUE_INPUT x=0", "TENSOR_BACKEND_OUTPUT y=1"]);
      const times = inOrder.map((name) => at.get(name) ?? NaN);
      expect(times).toEqual(times.toSorted((a, b) => a - b));
    }
    const whole = ofRequest("an ensemble", "three");
    expect(whole?.parent_id).toBeUndefined();
    const { names, tensors } = told(entries, whole?.id);
    expect(names).toEqual(
      [
        "QUEUE_START",
        "REQUEST_END",
        "REQUEST_START",
        ...httpMoments,
        "INFER_RESPONSE_COMPLETE",
      ].toSorted(),
    );
    expect(tensors).toEqual(["TENSOR_QUEUE_INPUT x=0", "TENSOR_BACKEND_OUTPUT y=3"]);
    for (const [model, given] of [
      ["one", ["TENSOR_QUEUE_INPUT x=0", "TENSOR_BACKEND_OUTPUT y=1"]],
      ["two", ["TENSOR_QUEUE_INPUT x=1", "TENSOR_BACKEND_OUTPUT y=3"]],
    ] as const) {
      const part = ofRequest("an ensemble", model);
      expect(part?.parent_id).toBe(whole?.id);
      expect(told(entries, part?.id)).toMatchObject({ names: modelMoments, tensors: given });
    }
  });

  it("tell when an error was sent", async () => {
    const file = path.join(testFolder(), "t.json");
    await start(shape, `triton,file=${file}`, "rate=1", "level=TIMESTAMPS");
    await http.infer("one", { inputs: [] });
    await http.infer("one", { inputs: [] }, { "X-Unusual": "1" });
    await expect(grpc.infer({ ...message(""), inputs: [] })).rejects.toThrow("expected 1 inputs");
    const stream = grpc.stream();
    stream.write({ ...message(""), inputs: [] });
    stream.end();
    await collect(stream);
    await server.stop();
    const entries: Entry[] = JSON.parse(readFileSync(file, "utf8"));
    const names = [1, 2, 3, 4].map((id) => told(entries, id).names);
    expect(names).toEqual([httpMoments, httpMoments, grpcMoments, grpcMoments]);
  });

  it("begin and end when a client says so, and outlive a reload of the model", async () => {
    const file = path.join(testFolder(), "t.json");
    await start(shape, `triton,file=${file}`);
    await http.infer("one", addingBody);
    const on = { trace_level: ["TIMESTAMPS"], trace_rate: "2", log_frequency: "1" };
    await http.post("/v2/models/one/trace/setting", on);
    // Another model is not traced, and does not count.
    await http.infer("two", addingBody);
    await http.infer("one", addingBody);
    await http.infer("one", { ...addingBody, id: "second" });
    await http.post("/v2/models/one/trace/setting", { trace_level: null });
    await http.infer("one", addingBody);
    await http.infer("one", addingBody);
    await server.stop();
    const entries: Entry[] = JSON.parse(readFileSync(`${file}.0`, "utf8"));
    expect(entries.flatMap((entry) => entry.model_name ?? [])).toEqual(["one"]);
    expect(entries.find((entry) => entry.model_name)?.request_id).toBe("second");
    expect(() => readFileSync(`${file}.1`)).toThrow("ENOENT");
    expect(() => readFileSync(file)).toThrow("ENOENT");
  });
});

describe.each(["serve", "dev"] as const)("spans of tidepool %s", patience, (shape) => {
  let collector: SpanCollector;
  beforeAll(async () => {
    collector = await startSpanCollector();
  });
  afterAll(() => collector.stop());

  const childrenOf = (span: Span | undefined): Span[] =>
    collector.spans
      .filter(({ parentSpanId }) => span !== undefined && parentSpanId === span.spanId)
      .toSorted((a, b) => Number(BigInt(a.startTimeUnixNano) - BigInt(b.startTimeUnixNano)));

  /** The span of the edge for a request, by the request's id. */
  const edgeOf = (id: string): Span | undefined =>
    collector.spans.find(
      (span) =>
        span.name === "InferRequest" &&
        childrenOf(span).some(({ attributes = [] }) =>
          attributes.some(({ value }) => value.stringValue === id),
        ),
    );

  it("tell of gateway, queue and compute as parts of the caller's trace", async () => {
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const caller = "b7ad6b7169203331";
    const traceparent = `00-${traceId}-${caller}-01`;
    const to = [`opentelemetry,url=${collector.url}`, "opentelemetry,bsp_schedule_delay=50"];
    // A rate of 0 traces those only that belong to a trace already.
    await start(
      shape,
      "mode=opentelemetry",
      "level=TIMESTAMPS",
      "rate=0",
      "opentelemetry,resource=service.name=mine",
      ...to,
    );
    await http.infer("one", { ...addingBody, id: "alone" });
    await http.infer(
      "one",
      { ...addingBody, id: "unsampled" },
      { traceparent: `${traceparent.slice(0, -2)}00` },
    );
    await http.infer("one", { ...addingBody, id: "http" }, { traceparent });
    const metadata = new Metadata();
    metadata.set("traceparent", traceparent);
    await grpc.infer(message("grpc"), metadata);
    await http.infer("three", { ...addingBody, id: "three" }, { traceparent });
    await http.infer("one", { id: "wrong", inputs: [] }, { traceparent });
    const asynchronous = { Prefer: "respond-async" };
    await http.infer("one", addingBody, asynchronous);
    const later = { ...asynchronous, traceparent };
    expect((await http.infer("one", { ...addingBody, id: "later" }, later)).status).toBe(202);
    await eventually(() => {
      const names = collector.spans.map(({ name }) => name);
      expect(names.filter((name) => name === "InferRequest")).toHaveLength(5);
      expect(names).toContain("InferJob");
    });
    expect(collector.resource).toContain("service.name=mine");
    expect(new Set(collector.spans.map((span) => span.traceId))).toEqual(new Set([traceId]));
    // The caller of the last was answered before the model had it.
    const jobs = collector.spans.filter(({ name }) => name === "InferJob");
    expect(jobs).toHaveLength(1);
    const accepted = collector.spans.find(({ spanId }) => spanId === jobs[0]?.parentSpanId);
    expect(accepted?.name).toBe("InferRequest");
    for (const [edge, above] of [
      [edgeOf("http"), edgeOf("http")],
      [edgeOf("grpc"), edgeOf("grpc")],
      [accepted, jobs[0]],
    ]) {
      expect(edge?.parentSpanId).toBe(caller);
      const [model] = childrenOf(above);
      expect(model?.name).toBe("one");
      const parts = childrenOf(model);
      expect(parts.map(({ name }) => name)).toEqual(["queue", "compute"]);
      expect(childrenOf(parts[1]).map(({ name }) => name)).toEqual([
        "compute_input",
        "compute_infer",
        "compute_output",
      ]);
      const arrivals = parts[0]?.events?.map(({ name }) => name) ?? [];
      expect(arrivals.includes("POOL_WORKER_START")).toBe(shape === "dev");
    }
    const [ensemble] = childrenOf(edgeOf("three"));
    expect(childrenOf(ensemble).map(({ name }) => name)).toEqual(["queue", "one", "two"]);
    const failed = collector.spans.find(({ status }) => status?.code === 2);
    expect(failed?.status?.message).toContain("expected 1 inputs but got 0 inputs");
    for (const span of collector.spans) {
      expect(BigInt(span.startTimeUnixNano)).toBeLessThanOrEqual(BigInt(span.endTimeUnixNano));
    }
  });
});

describe("spans for a collector that is away", patience, () => {
  it("cost neither answers nor the end of the server", async () => {
    await start(
      "serve",
      "mode=opentelemetry",
      "level=TIMESTAMPS",
      "rate=1",
      "opentelemetry,url=http://127.0.0.1:9/v1/traces",
      "opentelemetry,bsp_schedule_delay=10",
    );
    for (let i = 0; i < 5; i++) expect((await http.infer("one", addingBody)).status).toBe(200);
    expect(await server.stop()).toBe(0);
  });
});
