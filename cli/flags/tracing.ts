import { repeated, replaced } from "../flag.ts";
import { integer, path, text } from "../flag-type.ts";

const asTraceConfig = (setting: string) => (given: string) => `${setting}=${given}`;

/** Traces of single requests. */
export const traceFlags = {
  "trace-config": repeated(
    text,
    "level=<OFF|TIMESTAMPS|TENSORS>, rate=<n>, count=<n>, mode=<triton|opentelemetry>, triton,file=<path>, triton,log-frequency=<n>, opentelemetry,url=<url> or opentelemetry,resource=<key>=<value>.",
  ),
  "trace-file": replaced(path, "trace-config", asTraceConfig("triton,file")),
  "trace-level": replaced(text, "trace-config", asTraceConfig("level")),
  "trace-rate": replaced(integer(0), "trace-config", asTraceConfig("rate")),
  "trace-count": replaced(integer(-1), "trace-config", asTraceConfig("count")),
  "trace-log-frequency": replaced(
    integer(0),
    "trace-config",
    asTraceConfig("triton,log-frequency"),
  ),
};
