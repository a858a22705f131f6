import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { Logger } from "../telemetry/logger.ts";
import { askKubernetes, ownNamespace } from "./kubernetes-api.ts";
import type { KubernetesAccess, KubernetesAnswer, KubernetesQuestion } from "./kubernetes-api.ts";
import type { Scaler } from "./scaler.ts";
import { TroubleLog } from "./trouble-log.ts";

/** What is scaled. */
export interface ScaleTarget {
  readonly kind: "deployments" | "statefulsets";
  readonly name: string;
  /** Our own when it is left out. */
  readonly namespace?: string;
}

export interface KubernetesScalerOptions {
  readonly access: KubernetesAccess;
  readonly target: ScaleTarget;
  readonly log: Logger;
  /** For one question to the API server; 10 seconds by default. */
  readonly timeoutMilliseconds?: number;
  /** How often the number of replicas is read, which others may change, too; 10 seconds by default. */
  readonly refreshMilliseconds?: number;
}

/** A conflict is over as soon as the other writer is done. */
const attempts = 3;
/** Kubernetes' own rule for names, so that a name cannot lead to another path. */
const namePattern = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/u;

/** Scales a Deployment or StatefulSet by its scale subresource; it needs `get` and `patch` on that and nothing else. */
export class KubernetesScaler implements Scaler {
  readonly #options: KubernetesScalerOptions;
  readonly #path: string;
  readonly #subject: string;
  readonly #closing = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  readonly #trouble: TroubleLog;
  #replicas = 0;
  #closed = false;
  /** One question at a time, in order: an old answer must not overwrite a newer one. */
  #last: Promise<unknown> = Promise.resolve();

  private constructor(options: KubernetesScalerOptions, namespace: string) {
    const { kind, name } = options.target;
    this.#options = options;
    this.#subject = `${kind} '${namespace}/${name}'`;
    this.#path = `/apis/apps/v1/namespaces/${namespace}/${kind}/${name}/scale`;
    this.#trouble = new TroubleLog(options.log, `${this.#subject}: reading its scale`);
  }

  /** Reads the present number of replicas; rejects when that is refused or cannot be had. */
  static async open(options: KubernetesScalerOptions): Promise<KubernetesScaler> {
    const { access, target } = options;
    const namespace = target.namespace ?? (await ownNamespace(access));
    for (const name of [namespace, target.name]) {
      if (!namePattern.test(name)) throw badName(name);
    }
    const scaler = new KubernetesScaler(options, namespace);
    await scaler.#read();
    const { refreshMilliseconds = 10_000 } = options;
    scaler.#timer = setInterval(() => void scaler.#refresh(), refreshMilliseconds).unref();
    return scaler;
  }

  size(): number {
    return this.#replicas;
  }

  async scaleTo(count: number): Promise<void> {
    if (this.#closed)
      throw new InferenceError(StatusCode.Unavailable, "the Kubernetes scaler is closed");
    const patch = { spec: { replicas: count } };
    await this.#inTurn({ method: "PATCH", path: this.#path, patch });
  }

  /** The pods stay: they belong to the cluster. */
  async close(signal: AbortSignal): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    const cutOff = (): void => this.#closing.abort();
    signal.addEventListener("abort", cutOff, { once: true });
    if (signal.aborted) cutOff();
    await this.#last;
    signal.removeEventListener("abort", cutOff);
  }

  #read(): Promise<void> {
    return this.#inTurn({ method: "GET", path: this.#path });
  }

  async #refresh(): Promise<void> {
    try {
      await this.#read();
      this.#trouble.succeeded();
    } catch (error) {
      if (!this.#closed) this.#trouble.failed(error);
    }
  }

  #inTurn(question: Omit<KubernetesQuestion, "signal">): Promise<void> {
    const answered = this.#last.then(() => this.#ask(question));
    this.#last = answered.catch(() => {});
    return answered;
  }

  async #ask(question: Omit<KubernetesQuestion, "signal">): Promise<void> {
    let answer = await this.#answer(question);
    for (let attempt = 1; answer.status === 409 && attempt < attempts; attempt++)
      answer = await this.#answer(question);
    this.#replicas = this.#replicasIn(answer, question.method);
  }

  async #answer(question: Omit<KubernetesQuestion, "signal">): Promise<KubernetesAnswer> {
    const { access, timeoutMilliseconds = 10_000 } = this.#options;
    const timeout = AbortSignal.timeout(timeoutMilliseconds);
    const signal = AbortSignal.any([timeout, this.#closing.signal]);
    try {
      return await askKubernetes(access, { ...question, signal });
    } catch (cause) {
      const problem = timeout.aborted
        ? `no answer from the Kubernetes API within ${timeoutMilliseconds} ms`
        : `no answer from the Kubernetes API: ${messageOf(cause)}`;
      throw new InferenceError(StatusCode.Unavailable, `${this.#subject}: ${problem}`, { cause });
    }
  }

  #replicasIn({ status, body }: KubernetesAnswer, method: "GET" | "PATCH"): number {
    const verb = method.toLowerCase();
    // The API server leaves fields out that are zero.
    const replicas = field(field(body, "spec"), "replicas") ?? 0;
    if (status === 200 && field(body, "kind") === "Scale" && Number.isInteger(replicas))
      return Number(replicas);
    const told = field(body, "message");
    const said = typeof told === "string" ? `: ${told}` : "";
    const hint =
      status === 403
        ? `; expected a role with get and patch on ${this.#options.target.kind}/scale`
        : "";
    const text = `${this.#subject}: the Kubernetes API answered ${verb} with ${status}${said}${hint}`;
    throw new InferenceError(StatusCode.Unavailable, text);
  }
}

function badName(name: string): InferenceError {
  const text = `Kubernetes name '${name}': expected lower case letters, digits, '-' and '.'`;
  return new InferenceError(StatusCode.InvalidArg, text);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function field(of: unknown, name: string): unknown {
  return typeof of === "object" && of !== null ? Reflect.get(of, name) : undefined;
}
