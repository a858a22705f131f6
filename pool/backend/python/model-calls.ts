import { Call } from "../../../protocol/call.ts";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import type {
  InferenceRequest,
  InferenceResponse,
  SequenceOptions,
} from "../../../protocol/inference.ts";
import type { ResponseSink } from "../../../serving/scheduler.ts";
import type { HeadReader } from "./head-reader.ts";
import type { ModelHost } from "./host.ts";
import { parametersJson } from "./request-head.ts";
import { readExact, readParameters } from "./responses.ts";
import type { SharedMemory } from "./shared-memory.ts";
import { encodeTensors, type TensorReader } from "./tensors.ts";

/** Calls that one process may have open: a model that calls itself without end must come to one. */
const maxOpenCalls = 1024;
/** Calls within each other. */
const maxDepth = 32;
const startFlag = 1;
const endFlag = 2;
const notThere: ReadonlySet<StatusCode> = new Set([StatusCode.NotFound, StatusCode.Unavailable]);

export interface ModelCallsOptions {
  readonly host: ModelHost;
  readonly memory: SharedMemory | undefined;
  readonly send: (head: string, payloads?: readonly Uint8Array[]) => void;
}

/** On whose behalf a model calls, and which executions wait for the answer. */
export type CallOrigin = Pick<Call, "principal" | "callers">;

/** Requests that one model makes of others: runs each and sends its responses back to the process. */
export class ModelCalls {
  readonly #options: ModelCallsOptions;
  readonly #open = new Map<number, Call>();

  constructor(options: ModelCallsOptions) {
    this.#options = options;
  }

  /** True while there are calls without their last answer. */
  get areOpen(): boolean {
    return this.#open.size > 0;
  }

  /** Takes over the call of that number; what goes wrong is answered, too. */
  begin(
    number: number,
    decoupled: boolean,
    { request, traceparent }: ModelRequest,
    { principal, callers }: CallOrigin,
  ): void {
    const call = new Call(principal, performance.now(), traceparent);
    call.callers = callers;
    const sink = this.#sink(number);
    const refusal = this.#refusal(callers);
    if (refusal) {
      sink.fail(refusal);
      return;
    }
    this.#open.set(number, call);
    this.#run(request, decoupled, call, sink).catch((cause: unknown) => {
      const { code, message } = InferenceError.from(cause);
      const text = `Model ${request.modelName} - Error when running inference: ${message}`;
      sink.fail(new InferenceError(code, text));
    });
  }

  /** The model wants no more of it. */
  cancel(number: number): void {
    this.#open.get(number)?.cancel();
  }

  /** The process is gone. */
  close(): void {
    for (const call of this.#open.values()) call.cancel();
    this.#open.clear();
  }

  #refusal(callers: Call["callers"]): InferenceError | undefined {
    if (this.#open.size >= maxOpenCalls) {
      const text = `more than ${maxOpenCalls} calls of other models are open`;
      return new InferenceError(StatusCode.Unavailable, text);
    }
    if (callers.every(({ depth }) => depth <= maxDepth)) return undefined;
    const text = `models call each other within one request: given more than ${maxDepth} calls within each other`;
    return new InferenceError(StatusCode.Internal, text);
  }

  async #run(
    request: InferenceRequest,
    decoupled: boolean,
    call: Call,
    sink: ResponseSink,
  ): Promise<void> {
    const { host } = this.#options;
    const name = request.modelName;
    // One whose processes are being replaced is there: a call waits for them, as the requests of clients do.
    const { config } = await host.model(name, request.modelVersion).catch((cause: unknown) => {
      if (!notThere.has(InferenceError.from(cause).code)) throw cause;
      const text = `Failed for execute the inference request. Model '${name}' is not ready.`;
      throw new InferenceError(StatusCode.Internal, text, { cause });
    });
    if (!decoupled && config.modelTransactionPolicy?.decoupled) {
      const text =
        `Model ${name} is using the decoupled. The current BLS request call doesn't support models using the decoupled ` +
        "transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls for decoupled models.'";
      throw new InferenceError(StatusCode.Internal, text);
    }
    await host.infer(request, call, sink);
  }

  #sink(number: number): ResponseSink {
    const { send } = this.#options;
    const answer = (final: boolean, response: InferenceResponse | undefined): void => {
      if (final) this.#open.delete(number);
      const { head, payloads } = encodeTensors(response?.outputs ?? [], this.#options.memory);
      const parameters = response ? parametersJson(response.parameters) : "null";
      send(`["answer",${number},${final},null,${parameters},${head}]`, payloads);
    };
    return {
      send: (response, final) => answer(final, response),
      fail: ({ code, message }) => {
        this.#open.delete(number);
        send(`["answer",${number},true,${JSON.stringify([code, message])},null,[]]`);
      },
    };
  }
}

/** A request as a model has made it, and the trace that it belongs to. */
export interface ModelRequest {
  readonly request: InferenceRequest;
  readonly traceparent?: string;
}

/** Reads what the process says of a request that its model makes; throws a RangeError for what is none. */
export function readModelRequest(fields: HeadReader, tensors: TensorReader): ModelRequest {
  const modelName = fields.text();
  const version = fields.number();
  const id = fields.text();
  const correlation = readExact(fields.list());
  const flags = fields.count();
  const timeoutMicroseconds = fields.count();
  const parameters = readParameters(fields);
  const trace = fields.optional((some) => some.text());
  const outputs = fields.each((names) => ({ name: names.text() }));
  const inputs = tensors.tensors(fields);
  const sequence = sequenceOf(correlation, flags);
  const request = {
    modelName,
    modelVersion: version < 0 ? "" : String(version),
    id,
    inputs,
    outputs,
    parameters,
    priority: 0,
    timeoutMicroseconds,
    ...(sequence && { sequence }),
  };
  const traceparent = trace === undefined ? undefined : traceparentOf(trace);
  return { request, ...(traceparent !== undefined && { traceparent }) };
}

function sequenceOf(id: boolean | bigint | string, flags: number): SequenceOptions | undefined {
  if (typeof id === "boolean" || id === 0n || id === "") return undefined;
  return { id, start: (flags & startFlag) !== 0, end: (flags & endFlag) !== 0 };
}

function traceparentOf(context: string): string | undefined {
  try {
    const headers: unknown = JSON.parse(context);
    const found =
      typeof headers === "object" && headers && "traceparent" in headers
        ? headers.traceparent
        : undefined;
    return typeof found === "string" ? found : undefined;
  } catch {
    return undefined;
  }
}
