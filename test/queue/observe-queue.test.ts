import { describe, expect, it } from "vitest";
import { eachStand } from "../helpers/each-stand.ts";
import { eventually } from "../helpers/eventually.ts";
import { type QueueStand, send } from "../helpers/queue-stand.ts";

describe("observeQueue", () => {
  let stand: QueueStand;
  eachStand((opened) => {
    stand = opened;
  });

  it("sees what waits while nobody works, and who has it when somebody does", async () => {
    const gateway = await stand.gateway();
    const version = await stand.serve(gateway);
    const look = async () => (await gateway.versions.observations())[0];
    expect(await look()).toMatchObject({
      pool: stand.pool,
      waitingJobs: 0,
      activeJobs: 0,
      oldestAgeSeconds: 0,
      demand: 0,
      poolWorkers: [],
    });
    for (let i = 0; i < 3; i++) send(version);
    await eventually(async () =>
      expect(await look()).toMatchObject({ waitingJobs: 1, activeJobs: 0, demand: 3 }),
    );
    await eventually(async () => expect((await look())?.oldestAgeSeconds).toBeGreaterThan(0.02));

    const worker = await stand.poolWorker();
    await eventually(async () =>
      expect(await look()).toMatchObject({
        waitingJobs: 0,
        activeJobs: 1,
        oldestAgeSeconds: 0,
        demand: 3,
        poolWorkers: ["ready"],
        residentVersions: 1,
      }),
    );
    let finished = 0;
    await eventually(async () => {
      while (finished < worker.executions.length) worker.executions[finished++]?.finish();
      expect(await look()).toMatchObject({ activeJobs: 0, demand: 0 });
    });
  });
});
