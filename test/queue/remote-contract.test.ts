import { describe } from "vitest";
import { eachStand } from "../helpers/each-stand.ts";
import { keyOf, prepare, type QueueStand } from "../helpers/queue-stand.ts";
import { schedulerContract } from "../helpers/scheduler-contract.ts";

describe("RemoteScheduler, with one pool worker", () => {
  let stand: QueueStand;
  eachStand((opened) => {
    stand = opened;
  });
  schedulerContract(async () => {
    const { model, scheduler } = await stand.serve(await stand.gateway());
    const worker = await stand.poolWorker();
    return {
      scheduler,
      get executions() {
        return worker.executions;
      },
      prepare: (id) => prepare(model, { id }),
      inHand: () => worker.versions.loaded().get(keyOf("echo"))?.scheduler.inflight ?? 0,
    };
  });
});
