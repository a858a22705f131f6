import type { ProgressListener, ProgressState } from "../protocol/progress.ts";
import type { StartProgress } from "./pool-channel.ts";
import type { PoolLink } from "./pool-link.ts";

const states: Readonly<Record<StartProgress["phase"], ProgressState>> = {
  fetch: "fetching",
  load: "loading",
  warmup: "warming",
  ready: "running",
};

/**
 * Tells how pool workers get on with starting a version, from what they say of themselves.
 *
 * @param version its key
 * @returns ends that
 */
export function startProgress(
  version: string,
  { channel, presence }: Pick<PoolLink, "channel" | "presence">,
  listener: ProgressListener,
): () => void {
  let over = false;
  const starting = (): void => {
    if (!over) listener({ state: "starting" });
  };
  const ends = [
    channel.on("starting", starting),
    channel.on("progress", ({ version: started, phase, fetchedBytes, totalBytes }) => {
      if (started !== version) return;
      const bytes = { ...(fetchedBytes !== undefined && { fetchedBytes, totalBytes }) };
      listener({ state: states[phase], ...bytes });
    }),
  ];
  presence
    .present(Date.now())
    // One may have said that it is starting before anybody listened.
    .then((words) => words.some(({ state }) => state === "starting") && starting())
    .catch(() => {});
  return () => {
    over = true;
    for (const end of ends) end();
  };
}
