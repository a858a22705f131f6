import { describe, expect, it } from "vitest";
import { defaultTraceConfig, parseTraceConfig } from "../../telemetry/trace-config.ts";

describe("parseTraceConfig", () => {
  it("traces nothing by default", () => {
    expect(parseTraceConfig([])).toEqual(defaultTraceConfig);
    expect(defaultTraceConfig.values.level).toEqual({ timestamps: false, tensors: false });
  });

  it("reads the settings of file traces", () => {
    const config = parseTraceConfig([
      "triton,file=/tmp/a=b,c.json",
      "triton,log-frequency=50",
      "rate=100",
      "count=7",
      "level=TIMESTAMPS",
      "level=tensors",
    ]);
    expect(config.mode).toBe("triton");
    expect(config.file).toBe("/tmp/a=b,c.json");
    expect(config.values).toEqual({
      level: { timestamps: true, tensors: true },
      rate: 100,
      count: 7,
      logFrequency: 50,
    });
  });

  it("reads the settings of a collector", () => {
    const config = parseTraceConfig([
      "mode=opentelemetry",
      "opentelemetry,url=http://127.0.0.1:4318/v1/traces",
      "opentelemetry,resource=service.name=mine",
      "opentelemetry,resource=a=b=c",
      "opentelemetry,bsp_max_queue_size=10",
      "opentelemetry,bsp_schedule_delay=20",
      "opentelemetry,bsp_max_export_batch_size=5",
    ]);
    expect(config.mode).toBe("opentelemetry");
    expect(config.collector).toEqual({
      url: "http://127.0.0.1:4318/v1/traces",
      resource: ["service.name=mine", "a=b=c"],
      maxQueueSize: 10,
      scheduleDelayMilliseconds: 20,
      maxExportBatchSize: 5,
    });
  });

  it("lets a level of OFF win over all others, wherever it stands", () => {
    const { values } = parseTraceConfig(["level=OFF", "level=TIMESTAMPS", "level=TENSORS"]);
    expect(values.level).toEqual({ timestamps: false, tensors: false });
  });

  it.each([
    ["rate=x", "given 'rate=x', expected an integer from 0 to 4294967295"],
    ["rate=-1", "given 'rate=-1', expected an integer from 0"],
    ["count=-2", "given 'count=-2', expected an integer from -1 to 2147483647"],
    ["level=LOUD", "given 'level=LOUD', expected OFF, TIMESTAMPS or TENSORS"],
    ["mode=zipkin", "given 'mode=zipkin', expected triton or opentelemetry"],
    ["file=x", "given 'file=x', expected one of level; rate; count; mode; triton,file"],
    ["triton,file=", "given 'triton,file=', expected [<mode>,]<setting>=<value>"],
    [",a=b", "given ',a=b', expected [<mode>,]<setting>=<value>"],
    ["zipkin,url=x", "given 'zipkin,url=x', expected one of"],
    ["opentelemetry,url=localhost:4318", "expected an http or https URL"],
    ["opentelemetry,resource=name", "expected resource=<key>=<value>"],
  ])("refuses %s", (setting, message) => {
    expect(() => parseTraceConfig([setting])).toThrow(message);
  });

  it("refuses a level without a place for traces", () => {
    expect(() => parseTraceConfig(["level=TIMESTAMPS"])).toThrow(
      "--trace-config: given 'level', expected triton,file=<path> or mode=opentelemetry, too",
    );
    expect(parseTraceConfig(["level=TIMESTAMPS", "mode=opentelemetry"]).mode).toBe("opentelemetry");
  });

  it("refuses a URL with a password, and does not repeat it", () => {
    expect(parseSecret).toThrow("expected a URL without user, password and query");
    expect(parseSecret).not.toThrow("secret");
  });
});

function parseSecret(): void {
  parseTraceConfig(["opentelemetry,url=http://me:secret@host/v1/traces"]);
}
