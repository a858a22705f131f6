import { describe, expect, it } from "vitest";
import { onlyOnward, type Progress } from "../../protocol/progress.ts";

function heard(...told: readonly Progress[]): readonly Progress[] {
  const news: Progress[] = [];
  const tell = onlyOnward((progress) => news.push(progress));
  for (const progress of told) tell(progress);
  return news;
}

function fetched(fetchedBytes: number): Progress {
  return { state: "fetching", fetchedBytes, totalBytes: 10 };
}

describe("onlyOnward", () => {
  it("tells each state once", () => {
    expect(heard({ state: "queued" }, { state: "starting" }, { state: "starting" })).toEqual([
      { state: "queued" },
      { state: "starting" },
    ]);
  });

  it("leaves out those who are behind", () => {
    const loading = { state: "loading" } as const;
    const late = { state: "fetching", fetchedBytes: 9, totalBytes: 10 } as const;
    expect(heard({ state: "queued" }, loading, { state: "starting" }, late)).toEqual([
      { state: "queued" },
      loading,
    ]);
  });

  it("tells of bytes only when there are more", () => {
    expect(heard({ state: "fetching" }, fetched(4), fetched(2), fetched(4), fetched(10))).toEqual([
      { state: "fetching" },
      fetched(4),
      fetched(10),
    ]);
  });
});
