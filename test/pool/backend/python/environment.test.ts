import { describe, expect, it } from "vitest";
import { processEnvironment } from "../../../../pool/backend/python/environment.ts";

describe("processEnvironment", () => {
  it("hands on where things are and settings of frameworks, and nothing else", () => {
    const own = {
      PATH: "/bin",
      LC_ALL: "C",
      HF_HOME: "/cache",
      CUDA_VISIBLE_DEVICES: "1",
      TRITON_ANYTHING: "x",
      https_proxy: "p",
      AWS_SECRET_ACCESS_KEY: "secret",
      TIDEPOOL_REDIS_URL: "redis://:secret@host",
      NODE_OPTIONS: "--inspect",
      DATABASE_URL: "secret",
    };
    const given = processEnvironment(own, 3);
    expect(given).toMatchObject({ PATH: "/bin", LC_ALL: "C", HF_HOME: "/cache", https_proxy: "p" });
    expect(given).toMatchObject({ CUDA_VISIBLE_DEVICES: "1", TRITON_ANYTHING: "x" });
    expect(JSON.stringify(given)).not.toContain("secret");
    expect(given).not.toHaveProperty("NODE_OPTIONS");
  });

  it("lets libraries start as many threads as the instance has cores, unless told otherwise", () => {
    expect(processEnvironment({}, 3)).toMatchObject({ OMP_NUM_THREADS: "3" });
    expect(processEnvironment({ OMP_NUM_THREADS: "7" }, 3)).toMatchObject({ OMP_NUM_THREADS: "7" });
  });
});
