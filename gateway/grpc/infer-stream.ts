import type { ServerDuplexStream } from "@grpc/grpc-js";
import { anonymousCaller } from "../../auth/caller.ts";
import type { Call } from "../../protocol/call.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { InferenceRequest, InferenceResponse } from "../../protocol/inference.ts";
import type { RequestMemory } from "../../protocol/shared-memory.ts";
import { admit } from "../access.ts";
import type { Permit } from "../admission.ts";
import { clientError, logAnswered } from "../call-log.ts";
import type { DataPlane } from "../data-plane.ts";
import { beginTrace, endTrace, grpcMoments, traceFailure, traceSending } from "../trace-call.ts";
import { callFields, callOf, credentialsIn, forwardedHeaders } from "./call-context.ts";
import { inferenceRequest } from "./decode-request.ts";
import { encodeStreamError, encodeStreamResponse } from "./encode-response.ts";
import { callStatus } from "./error-status.ts";
import { emptyFinalResponse } from "./infer-parameters.ts";
import { isDecoupled } from "./inference.ts";
import type { GrpcOptions } from "./options.ts";
import { readRequest } from "./request-message.ts";
import type { RequestMessage } from "./request-message.ts";

/** Requests of one stream that may be under way; the client's next ones wait in the connection. */
const maxInflight = 128;

/** The response parameter that tells the last response to a request from those before it. */
const finalResponse = "triton_final_response";

/** A place in the order of answers: one-response models answer in the order of their requests. */
interface Turn {
  /** Every earlier one has been answered. */
  readonly come: Promise<unknown>;
  /** Lets the next one go ahead as soon as this one's turn has come. */
  readonly pass: () => void;
}

interface StreamedRequest {
  readonly message: RequestMessage;
  readonly call: Call;
  readonly turn: Turn;
  /** Of the message. */
  readonly bytes: number;
}

/** The requests and responses of one ModelStreamInfer call. */
export class InferStream {
  readonly #plane: DataPlane;
  readonly #options: GrpcOptions;
  readonly #duplex: ServerDuplexStream<Buffer, Buffer>;
  /** A failed request ends the call with its status, instead of being told of in a response. */
  readonly #endsOnError: boolean;
  readonly #calls = new Set<Call>();
  #lastTurn: Promise<unknown> = Promise.resolve();
  #takesMore = true;
  #goingAway = false;
  #over = false;
  #drained: PromiseWithResolvers<void> | undefined;

  constructor(plane: DataPlane, options: GrpcOptions, duplex: ServerDuplexStream<Buffer, Buffer>) {
    this.#plane = plane;
    this.#options = options;
    this.#duplex = duplex;
    this.#endsOnError = duplex.metadata.get("triton_grpc_error")[0] === "true";
    duplex.on("data", (bytes: Buffer) => this.#take(bytes));
    duplex.on("end", () => this.#takeNoMore());
    duplex.on("drain", () => this.#drained?.resolve());
    duplex.on("cancelled", () => this.#abandon());
  }

  /** Answers what it has taken, then ends the call for a server that goes away. */
  close(): void {
    this.#duplex.pause();
    this.#goingAway = true;
    this.#takesMore = false;
    this.#endWhenIdle();
  }

  #takeNoMore(): void {
    this.#takesMore = false;
    this.#endWhenIdle();
  }

  #take(bytes: Buffer): void {
    if (this.#over) return;
    let message: RequestMessage;
    try {
      message = readRequest(bytes);
    } catch (error) {
      const fields = callFields(this.#duplex.getPath(), callOf(this.#duplex.metadata));
      this.#end(clientError(error, this.#options.log, fields));
      return;
    }
    const call = callOf(this.#duplex.metadata);
    beginTrace(this.#options.tracer, call, message.modelName, grpcMoments);
    this.#calls.add(call);
    if (this.#calls.size >= maxInflight) this.#duplex.pause();
    const turn = this.#nextTurn();
    void this.#serve({ message, call, turn, bytes: bytes.length }).then(() => this.#finish(call));
  }

  #nextTurn(): Turn {
    const come = this.#lastTurn;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    this.#lastTurn = promise;
    return { come, pass: () => resolve(come) };
  }

  /** Never rejects. */
  async #serve({ message, call, turn, bytes }: StreamedRequest): Promise<void> {
    const memory = this.#options.sharedMemory?.open();
    let permit: Permit | undefined;
    try {
      permit = await this.#admit(message, call, bytes);
      const model = await this.#plane.model(message.modelName, message.modelVersion);
      const { headerForwardPattern } = this.#options;
      const headers = forwardedHeaders(this.#duplex.metadata, headerForwardPattern);
      const request = inferenceRequest(message, headers, memory);
      if (isDecoupled(model)) {
        turn.pass();
        await this.#answerOften(message, request, call, memory);
        this.#tell(message, call);
        return;
      }
      const response = await this.#plane.infer(request, call);
      await turn.come;
      const left = memory ? memory.place(response) : response;
      traceSending(call, grpcMoments);
      await this.#write(encodeStreamResponse(withFinal(left, true)));
      this.#tell(message, call);
    } catch (error) {
      await turn.come;
      await this.#fail(message, call, error);
    } finally {
      permit?.release();
      memory?.close();
      turn.pass();
    }
  }

  /** Each request anew: a stream may be open for longer than its key is valid. */
  async #admit(
    { modelName: model }: RequestMessage,
    call: Call,
    bytes: number,
  ): Promise<Permit | undefined> {
    const { access, admission } = this.#options;
    let caller = anonymousCaller;
    if (access) {
      const given = credentialsIn(this.#duplex.metadata);
      caller = await admit(access, given, { need: "infer", model });
      call.principal = caller;
    }
    return admission?.enter({ caller, call, model, bytes });
  }

  /** Where no response has said that it is the last one, an empty one says so to those who asked for it. */
  async #answerOften(
    message: RequestMessage,
    request: InferenceRequest,
    call: Call,
    memory: RequestMemory | undefined,
  ): Promise<void> {
    let ended = false;
    for await (const { response, final } of this.#plane.stream(request, call)) {
      const left = memory ? memory.place(response) : response;
      traceSending(call, grpcMoments);
      await this.#write(encodeStreamResponse(withFinal(left, final)));
      ended = final;
    }
    if (!ended && message.parameters?.get(emptyFinalResponse) === true) {
      await this.#write(encodeStreamResponse(emptyResponse(message)));
    }
  }

  async #fail(message: RequestMessage, call: Call, cause: unknown): Promise<void> {
    if (this.#over) return;
    const fields = callFields(this.#duplex.getPath(), call, message);
    const error = clientError(cause, this.#options.log, fields);
    traceFailure(call, error, grpcMoments);
    if (this.#endsOnError || error.code === StatusCode.Unauthenticated) {
      this.#end(error);
      return;
    }
    await this.#write(encodeStreamError(error.message, emptyResponse(message)));
  }

  #tell(message: RequestMessage, call: Call): void {
    const { log } = this.#options;
    if (log.verboseLevel === 0 || this.#over) return;
    logAnswered(log, callFields(this.#duplex.getPath(), call, message));
  }

  /** Resolves when there is room for the next one. */
  async #write(bytes: Buffer): Promise<void> {
    if (this.#over || this.#duplex.write(bytes)) return;
    this.#drained ??= Promise.withResolvers();
    await this.#drained.promise;
    this.#drained = undefined;
  }

  #finish(call: Call): void {
    endTrace(call, grpcMoments);
    this.#calls.delete(call);
    if (this.#over) return;
    if (this.#takesMore) this.#duplex.resume();
    else this.#endWhenIdle();
  }

  #endWhenIdle(): void {
    if (this.#calls.size > 0 || this.#over) return;
    if (this.#goingAway) {
      this.#end(new InferenceError(StatusCode.Unavailable, "server is shutting down"));
      return;
    }
    this.#over = true;
    this.#duplex.end();
  }

  /** Ends the call with an error's status. */
  #end(error: InferenceError): void {
    this.#abandon();
    this.#duplex.emit("error", callStatus(error));
  }

  /** Nobody listens any more: whatever is under way may be dropped. */
  #abandon(): void {
    this.#over = true;
    for (const call of this.#calls) call.cancel();
    this.#drained?.resolve();
  }
}

function withFinal(response: InferenceResponse, final: boolean): InferenceResponse {
  return { ...response, parameters: new Map(response.parameters).set(finalResponse, final) };
}

/** The end of the answers to a request, without an answer. */
function emptyResponse({ modelName, id }: RequestMessage): InferenceResponse {
  const parameters = new Map([[finalResponse, true]]);
  return { modelName, modelVersion: "", id, outputs: [], parameters };
}
