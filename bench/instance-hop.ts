import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { ServedModel } from "../protocol/served-model.ts";
import type { Tensor } from "../protocol/tensor.ts";
import { startInstances } from "../pool/instance/instance-group.ts";
import type { InstanceGroup } from "../pool/instance/model-instance.ts";
import { identityModel } from "../test/helpers/onnx-model.ts";
import { cpuGroup } from "../test/helpers/instance-groups.ts";
import { pendingRequest } from "../test/helpers/requests.ts";
import { uncheckedRequest } from "../test/helpers/unchecked-request.ts";
import { modelInput, modelOutput, servedModel } from "../test/helpers/served-model.ts";

/** What a request costs on its way through an instance's thread and an identity model [n,16], with no scheduler before it. */
const model = servedModel("identity", {
  backend: "onnxruntime",
  maxBatchSize: 8,
  input: [modelInput("X", "TYPE_FP32", [16])],
  output: [modelOutput("Y", "TYPE_FP32", [16])],
  instanceGroup: [cpuGroup()],
});

const input: Tensor = { name: "X", datatype: "FP32", shape: [1, 16], bytes: new Uint8Array(64) };

/** Runs so many executions, so many at once; the seconds it took. */
async function drive(group: InstanceGroup, inFlight: number, total: number): Promise<number> {
  const [instance] = group.instances;
  if (!instance) throw new Error("no instance");
  const started = performance.now();
  let sent = 0;
  const client = async (): Promise<void> => {
    while (sent++ < total) {
      await instance.execute([pendingRequest(uncheckedRequest(model, [input]))]);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, client));
  return (performance.now() - started) / 1000;
}

async function main(served: ServedModel): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), "tidepool-bench-"));
  writeFileSync(
    path.join(folder, "model.onnx"),
    identityModel([{ name: "X", datatype: "FP32", shape: ["n", 16] }, "Y"]),
  );
  const source = {
    name: served.name,
    version: "1",
    config: served.config,
    modelDirectory: folder,
    versionDirectory: folder,
    release: () => Promise.resolve(),
  };
  const group = await startInstances(source, served);
  await drive(group, 8, 20_000);
  for (const inFlight of [1, 8, 64]) {
    const total = inFlight === 1 ? 10_000 : 60_000;
    const seconds: number[] = [];
    for (let round = 0; round < 5; round++) seconds.push(await drive(group, inFlight, total));
    const best = Math.min(...seconds);
    const perSecond = Math.round(total / best).toLocaleString("en");
    const microseconds = ((best / total) * inFlight * 1e6).toFixed(0);
    process.stdout.write(`${inFlight} in flight: ${perSecond} runs/s, ${microseconds} µs each\n`);
  }
  await group.close();
  rmSync(folder, { recursive: true });
}

await main(model);
