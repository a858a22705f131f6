import type { ChainableCommander } from "ioredis";

/**
 * Sends what a pipeline has gathered and gives the results in order. Unlike `exec` it rejects when a command failed: who
 * sends several commands needs all of them.
 */
export async function execute(pipeline: ChainableCommander): Promise<unknown[]> {
  const results = (await pipeline.exec()) ?? [];
  const failed = results.find(([error]) => error);
  if (failed?.[0]) throw failed[0];
  return results.map(([, result]) => result);
}
