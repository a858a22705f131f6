import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { anonymous, Call } from "../../protocol/call.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { Job } from "../../protocol/job.ts";
import { TraceCollector } from "../../telemetry/trace-collector.ts";
import { parseTraceConfig } from "../../telemetry/trace-config.ts";
import { Tracer } from "../../telemetry/tracer.ts";
import { eventually } from "../helpers/eventually.ts";
import type { HandHeldExecution } from "../helpers/hand-held-instances.ts";
import { requestFor } from "../helpers/requests.ts";
import { SilentLog } from "../helpers/silent-log.ts";
import { type Span, type SpanCollector, startSpanCollector } from "../helpers/span-collector.ts";
import type { JobStand } from "./job-cases.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const accepting = "b7ad6b7169203331";

/** What accepts jobs in these cases. */
export const acceptingTraceparent = `00-${traceId}-${accepting}-01`;

/** Sends spans to a collector at once. */
export function tracerTo({ url }: SpanCollector): Tracer {
  const to = [`opentelemetry,url=${url}`, "opentelemetry,bsp_schedule_delay=10"];
  const config = parseTraceConfig(["mode=opentelemetry", "level=TIMESTAMPS", ...to]);
  return new Tracer(config, new TraceCollector(config.collector, new SilentLog()));
}

/** What holds for the traces of jobs wherever both are kept. */
export function jobTraceCases(start: (tracer: Tracer) => Promise<JobStand>): void {
  let collector: SpanCollector;
  let tracer: Tracer;
  let stand: JobStand;
  beforeAll(async () => {
    collector = await startSpanCollector();
  });
  beforeEach(async () => {
    tracer = tracerTo(collector);
    stand = await start(tracer);
  });
  afterEach(async () => {
    await stand.close();
    await tracer.close();
  });
  afterAll(() => collector.stop());

  function submit(id: string, traceparent?: string): Promise<Job> {
    return stand.jobs.submit(stand.jobs.newId("echo"), {
      principal: anonymous,
      request: requestFor(stand.model, [4], { id }),
      binaryOutputs: "all",
      keyed: false,
      traceparent,
    });
  }

  function execution(index: number): Promise<HandHeldExecution> {
    return eventually(() => {
      const found = stand.executions()[index];
      if (!found) throw new Error(`execution ${index} has not begun`);
      return found;
    });
  }

  function untilState({ id }: Job, state: string): Promise<void> {
    return eventually(async () =>
      expect(await stand.jobs.find(anonymous, id)).toMatchObject({ state }),
    );
  }

  /** Below a span, in their order. */
  function below({ spanId }: Span): Span[] {
    return collector.spans
      .filter(({ parentSpanId }) => parentSpanId === spanId)
      .toSorted((a, b) => Number(BigInt(a.startTimeUnixNano) - BigInt(b.startTimeUnixNano)));
  }

  it("has each attempt, and that of a replay, below what has accepted the job", async () => {
    const job = await submit("mine", acceptingTraceparent);
    (await execution(0)).fail(new InferenceError(StatusCode.Unavailable, "no room"));
    (await execution(1)).fail(new InferenceError(StatusCode.InvalidArg, "no number"));
    await untilState(job, "failed");
    await stand.jobs.replay(new Call(anonymous, 0), job.id);
    (await execution(2)).finish();
    await untilState(job, "done");

    const attempts = await eventually(() => {
      const found = collector.spans.filter((span) => valueOf(span, "tidepool.job_id") === job.id);
      expect(found).toHaveLength(3);
      return found;
    });
    expect(new Set(collector.spans.map((span) => span.traceId))).toEqual(new Set([traceId]));
    const consumer = 5;
    for (const attempt of attempts) {
      const { name, kind, parentSpanId: parent } = attempt;
      expect([name, kind, parent]).toEqual(["InferJob", consumer, accepting]);
      const [model] = below(attempt);
      if (!model) throw new Error("no span of the model");
      expect(model.name).toBe("echo");
      expect(valueOf(model, "triton.request_id")).toBe("mine");
      expect(below(model)[0]?.name).toBe("queue");
    }
    expect(attempts.map(({ status }) => status?.message)).toEqual([
      expect.stringContaining("no room"),
      expect.stringContaining("no number"),
      undefined,
    ]);
  });

  it("tells nothing of a job that is not traced", async () => {
    const untold = await submit("untold");
    (await execution(0)).finish();
    await untilState(untold, "done");
    const told = await submit("told", acceptingTraceparent);
    (await execution(1)).finish();
    const ids = (): unknown =>
      collector.spans
        .map((span) => valueOf(span, "tidepool.job_id"))
        .filter((id) => id === untold.id || id === told.id);
    await eventually(() => expect(ids()).toEqual([told.id]));
  });
}

function valueOf({ attributes = [] }: Span, name: string): string | undefined {
  return attributes.find(({ key }) => key === name)?.value.stringValue;
}
