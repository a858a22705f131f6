import type { RequestTrace } from "../protocol/request-trace.ts";
import type { TraceConfig } from "./trace-config.ts";
import type { TraceScope } from "./trace-scope.ts";
import { type TraceSettingChanges, TraceSettings } from "./trace-settings.ts";
import type { TraceSettingValues } from "./trace-values.ts";

/** What is known of a request when it is decided whether it is traced. */
export interface TraceStart {
  /** As the caller sent it. */
  readonly traceparent: string | undefined;
  /** `performance.now()` of its first byte, in milliseconds. */
  readonly receivedAt: number;
}

/** An attempt to run a request whose caller was told that it was accepted. */
export interface TraceResumption {
  /** Of what accepted it. */
  readonly traceparent: string;
  readonly job: string;
  /** `performance.now()` when the attempt began, or began to wait, in milliseconds. */
  readonly startAt: number;
}

/** Where traces go. */
export interface TraceOutput {
  /** Undefined for a request that is not traced. */
  begin(scope: TraceScope, start: TraceStart): RequestTrace | undefined;
  /** The part of a trace that such an attempt is; undefined where traces have no such parts. */
  resume(resumption: TraceResumption): RequestTrace | undefined;
  /** No new trace begins in this scope. */
  ended(scope: TraceScope): void;
  /** Resolves when all that was traced is where it should be. */
  close(): Promise<void>;
}

/** Decides which requests are traced, by settings that clients may change while the server runs. */
export class Tracer {
  readonly config: TraceConfig;
  readonly #output: TraceOutput;
  readonly #settings: TraceSettings;
  #active: boolean;

  constructor(config: TraceConfig, output: TraceOutput) {
    this.config = config;
    this.#output = output;
    this.#settings = new TraceSettings({
      defaults: config.values,
      hasPlace: config.mode !== "triton" || config.file !== "",
      onReplaced: (scope) => output.ended(scope),
    });
    this.#active = this.#settings.on;
  }

  /** False while nothing is traced: all that an ordinary request costs. */
  get active(): boolean {
    return this.#active;
  }

  begin(modelName: string, start: TraceStart): RequestTrace | undefined {
    const scope = this.#settings.scope(modelName);
    return scope.on ? this.#output.begin(scope, start) : undefined;
  }

  /** True where a trace can go on when its caller was answered. */
  get resumes(): boolean {
    return this.config.mode === "opentelemetry";
  }

  /** Whatever the settings are now: a trace that has begun is told to its end. */
  resume(resumption: TraceResumption): RequestTrace | undefined {
    return this.#output.resume(resumption);
  }

  /** @param model "" for those that hold for all models */
  values(model: string): TraceSettingValues {
    return this.#settings.scope(model).values;
  }

  /** @param model "" changes them for all models; it throws INVALID_ARG for settings that trace nothing */
  update(model: string, changes: TraceSettingChanges): void {
    this.#settings.update(model, changes);
    this.#active = this.#settings.on;
  }

  /** Writes out what was traced until now; nothing is traced any more. */
  async close(): Promise<void> {
    this.#active = false;
    this.#settings.close();
    await this.#output.close();
  }
}
