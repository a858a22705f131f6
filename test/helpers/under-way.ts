import { expect } from "vitest";
import { eventually } from "./eventually.ts";
import { scrape } from "./scrape.ts";

/** Waits until a server has so many requests for work under way. @param metrics as in `127.0.0.1:8002` */
export function untilUnderWay(metrics: string, count: number): Promise<void> {
  return eventually(async () => {
    expect((await scrape(metrics)).get("tidepool_requests_in_flight")).toBe(count);
  });
}
