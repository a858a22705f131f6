import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { S3TransferError } from "../../repository/s3-error.ts";
import { pauseMilliseconds, retrying } from "../../repository/s3-retry.ts";

const patience = { attempts: 3, firstPauseMilliseconds: 1, stallMilliseconds: 60_000 };

function transient(): S3TransferError {
  return new S3TransferError("Truncated", "too short");
}

async function hang(signal: AbortSignal): Promise<void> {
  await once(signal, "abort");
  signal.throwIfAborted();
}

async function drip(_signal: AbortSignal, alive: () => void): Promise<string> {
  const ticks = setInterval(alive, 5);
  await new Promise((resolve) => setTimeout(resolve, 900));
  clearInterval(ticks);
  return "all of it";
}

describe("retrying", () => {
  it("tries again what may pass, so often and no more", async () => {
    let tries = 0;
    const attempt = async (): Promise<string> => {
      if (++tries < 3) throw transient();
      return "done";
    };
    expect(await retrying(patience, undefined, attempt)).toBe("done");
    tries = -1;
    await expect(retrying(patience, undefined, attempt)).rejects.toThrow("too short");
    expect(tries).toBe(2);
  });

  it("does not try again what will not pass", async () => {
    let tries = 0;
    const denied = Object.assign(new Error("no"), { $metadata: { httpStatusCode: 403 } });
    const attempt = (): Promise<void> => {
      tries++;
      return Promise.reject(denied);
    };
    await expect(retrying(patience, undefined, attempt)).rejects.toBe(denied);
    expect(tries).toBe(1);
  });

  it("gives up a try in which nothing comes, and not one in which something does", async () => {
    const stalling = { ...patience, attempts: 2, stallMilliseconds: 300 };
    await expect(retrying(stalling, undefined, hang)).rejects.toThrow("no byte came for 300 ms");
    expect(await retrying({ ...stalling, attempts: 1 }, undefined, drip)).toBe("all of it");
  });

  it("stops at once when nobody waits any more", async () => {
    const controller = new AbortController();
    const long = { ...patience, firstPauseMilliseconds: 10_000 };
    const trying = retrying(long, controller.signal, () => Promise.reject(transient()));
    setImmediate(() => controller.abort(new Error("gone")));
    await expect(trying).rejects.toThrow("aborted");
  });
});

describe("pauseMilliseconds", () => {
  it("doubles from try to try up to ten seconds, half of it at random", () => {
    expect([1, 2, 3, 4].map((tried) => pauseMilliseconds(tried, 200, 0))).toEqual([
      100, 200, 400, 800,
    ]);
    expect(pauseMilliseconds(1, 200, 0.5)).toBe(150);
    expect(pauseMilliseconds(30, 200, 0)).toBe(5000);
  });
});
