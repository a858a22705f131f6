import { describe, expect, it } from "vitest";
import { HttpFailure } from "../../../cli/push/http-call.ts";
import { persistently } from "../../../cli/push/persistent.ts";

/** Fails with these, one after the other, and then succeeds; gives how often it was tried and what was told. */
async function tried(...errors: readonly unknown[]): Promise<[count: number, reasons: string[]]> {
  let count = 0;
  const reasons: string[] = [];
  await persistently(
    async () => {
      const error = errors[count++];
      if (error !== undefined) throw error;
    },
    { attempts: 4, onRetry: (reason) => reasons.push(reason) },
  );
  return [count, reasons];
}

function failure(status: number, text = ""): HttpFailure {
  return new HttpFailure({ status, text, retryAfterSeconds: 0 });
}

describe("persistently", () => {
  it("tries again what may go well later, and tells why", async () => {
    const busy = failure(503, '{"error": "busy"}');
    const s3 = failure(503, "<Error><Code>SlowDown</Code></Error>");
    expect(await tried(new Error("reset"), busy, s3)).toEqual([
      4,
      ["reset", "busy", "HTTP 503 SlowDown"],
    ]);
  });

  it("does not ask again whoever has been busy for as long as it may be", async () => {
    const options = { attempts: 4, busyMilliseconds: 0, onRetry: () => {} };
    const errors = [new Error("reset"), failure(504), failure(503)];
    let count = 0;
    const never = persistently(async () => {
      throw errors[count++];
    }, options);
    await expect(never).rejects.toMatchObject({ answer: { status: 503 } });
    expect(count).toBe(3);
  });

  it("gives up after so many tries, and at once what is refused", async () => {
    const errors = [1, 2, 3, 4].map((number) => new Error(`try ${number}`));
    await expect(tried(...errors)).rejects.toThrow("try 4");
    for (const status of [400, 401, 403, 404, 409, 500, 501])
      await expect(tried(failure(status))).rejects.toBeInstanceOf(HttpFailure);
  });
});
