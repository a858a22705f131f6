import { InferenceError } from "../protocol/error.ts";
import type { InstanceSettings } from "./backend/backend.ts";
import { importBackend } from "./backend/backends.ts";
import type { ProbeReport } from "./probe-report.ts";

const kilobyte = 1024;

/** Body of the child process that opens a model nobody has opened before; if that goes wrong only this process ends. */
async function open(settings: InstanceSettings): Promise<ProbeReport> {
  const started = performance.now();
  try {
    const { inputs, outputs } = (await importBackend(settings.config)).load(settings);
    const loadMilliseconds = performance.now() - started;
    const peakBytes = process.resourceUsage().maxRSS * kilobyte;
    return { opened: true, finding: { inputs, outputs, loadMilliseconds, peakBytes } };
  } catch (error) {
    const { code, message } = InferenceError.from(error);
    return { opened: false, code, message };
  }
}

// The listener keeps the process alive until whoever started it has read the report and ends it, or is gone itself.
process.on("message", async (settings: InstanceSettings) => {
  process.send?.(await open(settings));
});
