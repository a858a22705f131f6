import { status } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { busyBody, busyMessage, busyModel } from "../helpers/busy-model.ts";
import { eventually } from "../helpers/eventually.ts";
import { errorOf } from "../helpers/http-client.ts";
import { scrape } from "../helpers/scrape.ts";
import { serving } from "../helpers/serving.ts";
import { untilUnderWay } from "../helpers/under-way.ts";

const config = "max_batch_size: 4 instance_group [{ count: 1 }]";
const blocker = busyBody(5_000_000, 1);
const short = busyBody(1, 1);

describe("a request that waits behind a long one", () => {
  const running = serving((models) => {
    models.model("direct", { 1: busyModel(true) }, config);
    models.model("dynamic", { 1: busyModel(true) }, `${config} dynamic_batching {}`);
  });

  const counter = async (name: string, model: string, reason = ""): Promise<number> => {
    const series = `${name}{model="${model}",${reason && `reason="${reason}",`}version="1"}`;
    return (await scrape(running.server.metrics)).get(series) ?? NaN;
  };
  const expectWaiting = (model: string, count: number): Promise<void> =>
    eventually(async () => {
      expect(await counter("nv_inference_pending_request_count", model)).toBe(count);
    });

  it.each(["direct", "dynamic"])(
    "leaves the queue of a %s scheduler when nobody waits for it any more",
    async (model) => {
      let blocked = true;
      const blocking = running.http.infer(model, blocker).finally(() => (blocked = false));
      // Whatever is sent now comes after it.
      await untilUnderWay(running.server.metrics, 1);

      const hungUp = new AbortController();
      const url = `${running.http.origin}/v2/models/${model}/infer`;
      const abandoned = fetch(url, {
        method: "POST",
        body: JSON.stringify(short),
        signal: hungUp.signal,
      });
      abandoned.catch(() => {});
      const late = running.grpc.ask("ModelInfer", busyMessage(model, 1, 1), { deadline: 300 });
      late.catch(() => {});
      await expectWaiting(model, 2);

      const expired = await running.http.infer(model, {
        ...short,
        parameters: { timeout: 50_000 },
      });
      expect(expired.status).toBe(503);
      expect(errorOf(expired)).toBe("[request id: <id_unknown>] Request timeout expired");

      hungUp.abort();
      await expect(abandoned).rejects.toThrow("aborted");
      await expect(late).rejects.toMatchObject({ code: status.DEADLINE_EXCEEDED });
      await expectWaiting(model, 0);
      expect(blocked).toBe(true);

      expect((await blocking).status).toBe(200);
      expect(await counter("nv_inference_exec_count", model)).toBe(1);
      expect(await counter("nv_inference_request_success", model)).toBe(1);
      const failures = (reason: string): Promise<number> =>
        counter("nv_inference_request_failure", model, reason);
      expect(await failures("REJECTED")).toBe(1);
      expect(await failures("CANCELED")).toBe(2);
    },
  );
});
