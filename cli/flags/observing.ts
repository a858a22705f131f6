import { flag, optional, repeated } from "../flag.ts";
import { boolean, choice, integer, port, positiveNumber, text } from "../flag-type.ts";

/** Logs. */
export const logFlags = {
  "log-verbose": flag(integer(0), 0, "How much more to log: 0 nothing, 1 every request, 2 steps."),
  "log-info": flag(boolean, true, "Log what happens."),
  "log-warning": flag(boolean, true, "Log warnings."),
  "log-error": flag(boolean, true, "Log errors."),
  "log-format": flag(choice("default", "ISO8601"), "default", "How log lines spell the time."),
  "log-file": flag(text, "", "File for the log, instead of standard output."),
  "audit-log": flag(
    text,
    "-",
    "File for one line about each change of models, keys and settings; - for the log.",
  ),
};

/** Metrics for Prometheus. */
export const metricsFlags = {
  "allow-metrics": flag(boolean, true, "Serve metrics."),
  "allow-gpu-metrics": flag(boolean, true, "Have metrics of the GPUs among them."),
  "allow-cpu-metrics": flag(boolean, true, "Have metrics of the CPU and its memory among them."),
  "metrics-address": optional(text, "Address of the metrics; default: that of HTTP."),
  "metrics-port": flag(port, 8002, "Port of the metrics; 0 takes any free one."),
  "pool-metrics-port": flag(
    port,
    0,
    "Port of a pool worker's own metrics; 0 has none. Of several on one machine the first gets it.",
  ),
  "autoscaler-metrics-port": flag(port, 0, "Port of the autoscaler's metrics; 0 has none."),
  "metrics-interval-ms": flag(positiveNumber, 2000, "Milliseconds between two looks at devices."),
  "metrics-config": repeated(
    text,
    "counter_latencies=<boolean>, summary_latencies=<boolean> or summary_quantiles=<q:e,q:e>.",
  ),
};
