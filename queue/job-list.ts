import { invalidArgument } from "../protocol/error.ts";
import type { JobPage } from "../protocol/job.ts";
import { type JobStore, placeOf } from "./job-store.ts";

const cursorPattern = /^[0-9a-z]{9,12}:j_[\w-]{30}$/u;

/** The jobs of an owner in all pools, the newest first, from where the page before ended. */
export async function listJobs(
  stores: readonly JobStore[],
  owner: string,
  limit: number,
  cursor?: string,
): Promise<JobPage> {
  if (cursor !== undefined && !cursorPattern.test(cursor)) {
    throw invalidArgument("cursor: given another text, expected the one of the page before");
  }
  const found = await Promise.all(
    stores.map(async (store) =>
      (await store.places(owner, limit + 1, cursor)).map((place) => ({ store, place })),
    ),
  );
  const newest = found.flat().toSorted((a, b) => (a.place < b.place ? 1 : -1));
  const page = newest.slice(0, limit);
  const records = await Promise.all(
    stores.map((store) => {
      const places = page.filter((one) => one.store === store).map(({ place }) => place);
      return store.readPlaces(owner, places);
    }),
  );
  const jobs = records
    .flat()
    .map(({ job }) => job)
    .toSorted((a, b) => (placeOf(a) < placeOf(b) ? 1 : -1));
  const last = newest.length > limit ? page.at(-1)?.place : undefined;
  return { jobs, ...(last !== undefined && { cursor: last }) };
}
