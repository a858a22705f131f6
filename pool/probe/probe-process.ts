import { isDeepStrictEqual } from "node:util";
import { InferenceError } from "../../protocol/error.ts";
import type { LoadedModel } from "../backend/backend.ts";
import { importBackend } from "../backend/backends.ts";
import type { ProbeOrder, ProbeReport } from "./probe-report.ts";

const kilobyte = 1024;

/** Body of the child process that opens a model nobody has opened before; if that goes wrong only this process ends. */
async function probe(order: ProbeOrder): Promise<ProbeReport> {
  const started = performance.now();
  try {
    const { inputs, outputs } = await open(order);
    const loadMilliseconds = performance.now() - started;
    const peakBytes = process.resourceUsage().maxRSS * kilobyte;
    return { opened: true, finding: { inputs, outputs, loadMilliseconds, peakBytes } };
  } catch (error) {
    const { code, message } = InferenceError.from(error);
    return { opened: false, code, message };
  }
}

async function open({ settings, saveTo }: ProbeOrder): Promise<LoadedModel> {
  const backend = await importBackend(settings.config);
  if (saveTo === undefined) return backend.load(settings);
  const model = await backend.save(settings, saveTo);
  // The server is to open what was saved, and must not be the first to do so.
  const again = await backend.load({ ...settings, savedGraph: saveTo });
  if (isDeepStrictEqual([again.inputs, again.outputs], [model.inputs, model.outputs])) return model;
  throw new Error("the saved graph has other tensors than the model");
}

// The listener keeps the process alive until whoever started it has read the report and ends it, or is gone itself.
process.on("message", async (order: ProbeOrder) => {
  process.send?.(await probe(order));
});
