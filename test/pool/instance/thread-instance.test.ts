import { describe, expect, it, onTestFinished, vi } from "vitest";
import { ThreadInstance } from "../../../pool/instance/thread-instance.ts";
import { Batcher } from "../../../pool/scheduler/batch.ts";
import { cpu } from "../../../pool/devices.ts";
import { eventually } from "../../helpers/eventually.ts";
import { pendingRequest, type SentRequest } from "../../helpers/requests.ts";
import { uncheckedRequest } from "../../helpers/unchecked-request.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";

const model = servedModel("m", {
  input: [modelInput("X", "TYPE_FP32", [1])],
  output: [modelOutput("Y", "TYPE_FP32", [1])],
});
const settings = {
  modelName: "m",
  config: model.config,
  versionDirectory: "",
  device: cpu,
  cores: 1,
};

async function startDying(
  onRoom: () => void,
  prepare?: () => Promise<void>,
): Promise<ThreadInstance> {
  const script = new URL("../../fixtures/dying-thread.ts", import.meta.url);
  const batcher = new Batcher(model);
  const options = { name: "m_0", settings, batcher, onRoom, script, ...(prepare && { prepare }) };
  const instance = await ThreadInstance.start(options);
  onTestFinished(() => instance.close());
  return instance;
}

function request(): SentRequest {
  return pendingRequest(
    uncheckedRequest(model, [
      { name: "X", datatype: "FP32", shape: [1], bytes: new Uint8Array(4) },
    ]),
  );
}

describe("ThreadInstance", () => {
  it("fails what it ran when its thread dies, refuses more, and comes back", async () => {
    const onRoom = vi.fn<() => void>();
    const instance = await startDying(onRoom);
    await expect(instance.execute([request()])).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "model 'm': instance 'm_0' died while it ran the request",
    });
    expect(instance.alive).toBe(false);
    expect(instance.hasRoom).toBe(false);
    await expect(instance.execute([request()])).rejects.toThrow(
      "instance 'm_0' is being restarted",
    );
    await vi.waitFor(() => expect(instance.alive).toBe(true), { timeout: 5000 });
    expect(onRoom).toHaveBeenCalled();
    expect(instance.hasRoom).toBe(true);
  });

  it("is prepared after each start, until that works, before it has room", async () => {
    let ready: (() => void) | undefined;
    const prepare = vi
      .fn<() => Promise<void>>(() => new Promise((resolve) => (ready = resolve)))
      .mockResolvedValueOnce()
      .mockRejectedValueOnce(new Error("not yet"));
    const onRoom = vi.fn<() => void>();
    const instance = await startDying(onRoom, prepare);
    expect(instance.hasRoom).toBe(true);
    await expect(instance.execute([request()])).rejects.toThrow("died");
    await eventually(() => expect(prepare).toHaveBeenCalledTimes(3));
    expect([instance.alive, instance.hasRoom]).toEqual([false, false]);
    expect(onRoom).not.toHaveBeenCalled();
    ready?.();
    await eventually(() => expect(instance.hasRoom).toBe(true));
    expect(onRoom).toHaveBeenCalledOnce();
  });

  it("does not start when it cannot be prepared", async () => {
    const failure = new Error("not prepared");
    await expect(
      startDying(
        () => {},
        () => Promise.reject(failure),
      ),
    ).rejects.toBe(failure);
  });

  it("stays down once it is closed", async () => {
    const instance = await startDying(() => {});
    await instance.close();
    expect(instance.alive).toBe(false);
    await expect(instance.execute([request()])).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });

  it("refuses a tensor that its model does not have", async () => {
    const instance = await startDying(() => {});
    const stranger = pendingRequest(
      uncheckedRequest(model, [
        { name: "Z", datatype: "FP32", shape: [1], bytes: new Uint8Array(4) },
      ]),
    );
    await expect(instance.execute([stranger])).rejects.toThrow(
      "unexpected inference input 'Z' for model 'm'",
    );
  });
});
