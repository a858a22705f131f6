import { isOn, type TraceSettingValues } from "./trace-values.ts";

/** Chooses among the requests that one set of settings holds for: one of so many, until enough have been traced. */
export class TraceScope {
  readonly #values: TraceSettingValues;
  #left: number;
  #seen = 0;

  constructor(values: TraceSettingValues) {
    this.#values = values;
    this.#left = values.count;
  }

  /** The settings, with the count that is left. */
  get values(): TraceSettingValues {
    return { ...this.#values, count: this.#left };
  }

  get on(): boolean {
    return isOn(this.#values.level);
  }

  /** True when no further request is chosen. */
  get exhausted(): boolean {
    return this.#left === 0;
  }

  /** Counts a request; true for one that is to be traced. */
  take(): boolean {
    const { rate } = this.#values;
    if (!this.on || rate === 0 || this.#left === 0) return false;
    this.#seen++;
    if (this.#seen % rate !== 0) return false;
    if (this.#left > 0) this.#left--;
    return true;
  }
}
