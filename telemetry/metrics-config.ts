import { InferenceError, StatusCode } from "../protocol/error.ts";

/** What `--metrics-config` switches. */
export interface MetricsConfig {
  /** `nv_inference_…_duration_us` and their buckets. */
  readonly counterLatencies: boolean;
  /** `nv_inference_…_summary_us`. */
  readonly summaryLatencies: boolean;
  /** Between 0 and 1. */
  readonly summaryQuantiles: readonly number[];
}

export const defaultMetricsConfig: MetricsConfig = {
  counterLatencies: true,
  summaryLatencies: false,
  summaryQuantiles: [0.5, 0.9, 0.95, 0.99, 0.999],
};

/** Reads settings written `name=value`; the last of a name wins. Throws an INVALID_ARG for anything else. */
export function parseMetricsConfig(settings: readonly string[]): MetricsConfig {
  let config = defaultMetricsConfig;
  for (const setting of settings) {
    const equals = setting.indexOf("=");
    const name = setting.slice(0, equals === -1 ? undefined : equals);
    config = { ...config, ...parseSetting(name, equals === -1 ? "" : setting.slice(equals + 1)) };
  }
  return config;
}

function parseSetting(name: string, value: string): Partial<MetricsConfig> {
  switch (name) {
    case "counter_latencies":
      return { counterLatencies: parseSwitch(name, value) };
    case "summary_latencies":
      return { summaryLatencies: parseSwitch(name, value) };
    case "summary_quantiles":
      return { summaryQuantiles: value.split(",").map(parseQuantile) };
    case "histogram_latencies":
      // The buckets of every model are there anyway, under `counter_latencies`.
      parseSwitch(name, value);
      return {};
    default:
      throw new InferenceError(
        StatusCode.InvalidArg,
        `--metrics-config: given '${name}=${value}', expected counter_latencies, ` +
          "histogram_latencies, summary_latencies or summary_quantiles",
      );
  }
}

function parseSwitch(name: string, value: string): boolean {
  if (/^(?:true|1)$/iu.test(value)) return true;
  if (/^(?:false|0)$/iu.test(value)) return false;
  throw new InferenceError(
    StatusCode.InvalidArg,
    `--metrics-config: given '${name}=${value}', expected true or false`,
  );
}

/** Of `quantile:error`; the error has no use here, because quantiles are read from buckets. */
function parseQuantile(pair: string): number {
  const [quantile = "", error = "0"] = pair.split(":");
  const value = Number(quantile);
  if (quantile !== "" && value >= 0 && value <= 1 && Number(error) >= 0) return value;
  throw new InferenceError(
    StatusCode.InvalidArg,
    `--metrics-config: given summary_quantiles '${pair}', expected quantile:error, as in 0.99:0.001`,
  );
}
