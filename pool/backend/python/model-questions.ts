import { InferenceError } from "../../../protocol/error.ts";
import type { LoadOptions } from "../../../protocol/engine.ts";
import type { Labels } from "../../../telemetry/metric-family.ts";
import type { MetricChange, MetricHolds, MetricKind } from "./custom-metrics.ts";
import type { HeadReader } from "./head-reader.ts";
import type { ModelHost } from "./host.ts";

export interface ModelQuestionsOptions {
  readonly host: ModelHost;
  /** Of the instance, as errors name it. */
  readonly name: () => string;
  readonly send: (head: string) => void;
}

/** What a model asks of the server beside other models' answers: to load and unload models, and metrics of its own. */
export class ModelQuestions {
  readonly #options: ModelQuestionsOptions;
  readonly #metrics: MetricHolds;

  constructor(options: ModelQuestionsOptions) {
    this.#options = options;
    this.#metrics = options.host.metrics.open();
  }

  /** Throws a RangeError for a kind of message that there is not. */
  received(kind: string, fields: HeadReader): void {
    const number = fields.count();
    if (kind === "change") this.#metrics.change(number, changeOf(fields.text()), fields.number());
    else if (kind === "endMetric") this.#metrics.closeMetric(number);
    else if (kind === "endFamily") this.#metrics.closeFamily(number);
    else void this.#answer(number, () => this.#ask(kind, fields));
  }

  /** The process is gone. */
  close(): void {
    this.#metrics.close();
  }

  async #answer(number: number, ask: () => unknown): Promise<void> {
    const { name, send } = this.#options;
    try {
      const answer = (await ask()) ?? null;
      send(JSON.stringify(["answer", number, null, answer]));
    } catch (error) {
      const { message } = InferenceError.from(error);
      const text = `Failed to process the request for model '${name()}', message: ${message}`;
      send(JSON.stringify(["answer", number, text, null]));
    }
  }

  #ask(kind: string, fields: HeadReader): unknown {
    if (kind === "family") return this.#openFamily(fields);
    if (kind === "metric") return this.#openMetric(fields);
    if (kind === "value") return this.#metrics.value(fields.count());
    const { host } = this.#options;
    if (kind === "ready") return host.modelReady(fields.text(), fields.text());
    if (kind === "unload") {
      return host.unload(fields.text(), { unloadDependents: fields.boolean() });
    }
    if (kind === "load") return host.load(fields.text(), loadOptions(fields));
    throw new RangeError(`unknown message '${kind}'`);
  }

  #openFamily(fields: HeadReader): void {
    const number = fields.count();
    const name = fields.text();
    this.#metrics.openFamily(number, name, fields.text(), kindOf(fields.text()));
  }

  #openMetric(fields: HeadReader): void {
    const number = fields.count();
    const family = fields.count();
    const labels = textsOf(fields.value());
    const bounds = fields.optional((some) => some.each((bound) => bound.number()));
    this.#metrics.openMetric(number, family, labels, bounds ?? []);
  }
}

function loadOptions(fields: HeadReader): LoadOptions {
  const config = fields.text();
  const contents = Object.entries(textsOf(fields.value()));
  const files = new Map(
    contents.map(([path, base64]) => [path.replace(/^file:/u, ""), Buffer.from(base64, "base64")]),
  );
  return { ...(config !== "" && { config }), ...(files.size > 0 && { files }) };
}

function textsOf(value: unknown): Labels {
  const entries = Object.entries(typeof value === "object" && value !== null ? value : {});
  return Object.fromEntries(entries.map(([name, text]) => [name, String(text)]));
}

function kindOf(text: string): MetricKind {
  if (text === "counter" || text === "gauge" || text === "histogram") return text;
  throw new RangeError("expected the kind of a metric");
}

function changeOf(text: string): MetricChange {
  if (text === "increment" || text === "set" || text === "observe") return text;
  throw new RangeError("expected the change of a metric");
}
