import { invalidArgument } from "../protocol/error.ts";
import { TraceScope } from "./trace-scope.ts";
import { isOn, type TraceSettingValues } from "./trace-values.ts";

/** New values; null takes a value back that was set before. */
export type TraceSettingChanges = {
  readonly [Name in keyof TraceSettingValues]?: TraceSettingValues[Name] | null;
};

type Given = Partial<TraceSettingValues>;

export interface TraceSettingsOptions {
  readonly defaults: TraceSettingValues;
  /** False where there is no place for traces that could be switched on. */
  readonly hasPlace: boolean;
  /** A scope that no new request comes to. */
  readonly onReplaced: (scope: TraceScope) => void;
}

/**
 * The settings of all models and of single ones. What is not set for a model is as it is for all; what is not set for all
 * is as the server was started. Every change begins a new count of requests for those whom it concerns.
 */
export class TraceSettings {
  readonly #options: TraceSettingsOptions;
  /** What was set for all models. */
  #given: Given = {};
  #global: TraceScope;
  readonly #models = new Map<string, { readonly given: Given; readonly scope: TraceScope }>();

  constructor(options: TraceSettingsOptions) {
    this.#options = options;
    this.#global = new TraceScope(options.defaults);
  }

  /** Where the model's requests are counted, and by which settings. */
  scope(model: string): TraceScope {
    return this.#models.get(model)?.scope ?? this.#global;
  }

  /** True when some request could be traced. */
  get on(): boolean {
    if (this.#global.on) return true;
    for (const { scope } of this.#models.values()) if (scope.on) return true;
    return false;
  }

  /** @param model "" for all models; it throws INVALID_ARG, and changes nothing, for settings that trace nothing */
  update(model: string, changes: TraceSettingChanges): void {
    if (model === "") this.#updateGlobal(changes);
    else this.#updateModel(model, changes);
  }

  #updateGlobal(changes: TraceSettingChanges): void {
    const given = changed(remaining(this.#given, this.#global), changes);
    const values = this.#checked({ ...this.#options.defaults, ...given });
    const models = [...this.#models].map(([name, old]) => {
      const own = remaining(old.given, old.scope);
      return { name, given: own, values: this.#checked({ ...values, ...own }) };
    });
    this.#options.onReplaced(this.#global);
    this.#given = given;
    this.#global = new TraceScope(values);
    for (const one of models) this.#replace(one.name, one.given, one.values);
  }

  #updateModel(model: string, changes: TraceSettingChanges): void {
    const old = this.#models.get(model);
    const given = changed(old ? remaining(old.given, old.scope) : {}, changes);
    this.#replace(model, given, this.#checked({ ...this.#global.values, ...given }));
  }

  #replace(model: string, given: Given, values: TraceSettingValues): void {
    const old = this.#models.get(model);
    if (old) this.#options.onReplaced(old.scope);
    if (Object.keys(given).length === 0) this.#models.delete(model);
    else this.#models.set(model, { given, scope: new TraceScope(values) });
  }

  /** Tells every scope's end. */
  close(): void {
    this.#options.onReplaced(this.#global);
    for (const { scope } of this.#models.values()) this.#options.onReplaced(scope);
  }

  #checked(values: TraceSettingValues): TraceSettingValues {
    if (!isOn(values.level)) return values;
    if (values.rate === 0) throw invalid("sample rate must be non-zero");
    if (!this.#options.hasPlace) throw invalid("trace file name is not given");
    return values;
  }
}

function changed(given: Given, changes: TraceSettingChanges): Given {
  const kept = Object.entries({ ...given, ...changes }).filter(([, value]) => value !== null);
  return Object.fromEntries(kept);
}

/** A count that was set is used up as requests come. */
function remaining(given: Given, scope: TraceScope): Given {
  return given.count === undefined ? given : { ...given, count: scope.values.count };
}

function invalid(reason: string): Error {
  return invalidArgument(`Attempting to set invalid trace setting :${reason}`);
}
