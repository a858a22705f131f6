import { once } from "node:events";
import { readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ClientDuplexStream } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.ts";
import { collect, type Fields, GrpcClient } from "../helpers/grpc-client.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { pythonModel } from "../helpers/python-models.ts";
import { startTidepool, type TidepoolProcess } from "../helpers/tidepool-process.ts";

const count = 100;
const source = `
import os
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.directory = args["model_repository"]

    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for i in range(${count}):
                self.tell("sent", i)
                tensor = pb_utils.Tensor("OUT", np.full(2**20, i, np.uint8))
                sender.send(pb_utils.InferenceResponse([tensor]))
                if request.is_cancelled():
                    self.tell("cancelled", i)
                    break
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def tell(self, name, value):
        path = os.path.join(self.directory, name)
        with open(path + ".new", "w") as file:
            file.write(str(value))
        os.replace(path + ".new", path)
`;

interface Begun {
  readonly stream: ClientDuplexStream<Fields | Buffer, Fields>;
  readonly first: Fields;
}

describe.each(["serve", "dev"] as const)("A slow client of a Python model in %s", (command) => {
  const models = new ModelDirectory();
  let server: TidepoolProcess;
  let grpc: GrpcClient;
  beforeAll(async () => {
    pythonModel(
      models,
      "streaming",
      `input [{ name: "IN" data_type: TYPE_UINT8 dims: [ 1 ] }]
       output [{ name: "OUT" data_type: TYPE_UINT8 dims: [ -1 ] }]
       model_transaction_policy { decoupled: true }`,
      source,
    );
    server = await startTidepool([`--model-repository=${models.path}`], command);
    grpc = new GrpcClient(server.grpc);
  });
  afterAll(async () => {
    grpc.close();
    await server.stop();
    models.remove();
  });
  const told = (name: string): string =>
    readFileSync(path.join(models.path, "streaming", name), "utf8");
  /** A call whose client reads the first response, because one that has never read anything holds nobody up. */
  const begin = async (): Promise<Begun> => {
    const stream = grpc.stream();
    const input = { name: "IN", datatype: "UINT8", shape: [1] };
    stream.write({ modelName: "streaming", inputs: [input], rawInputContents: [Buffer.of(1)] });
    stream.end();
    const [first] = await once(stream, "data");
    stream.pause();
    return { stream, first };
  };
  /** Resolves with how many it has sent when it has not sent another one for a while. */
  const held = (): Promise<number> =>
    eventually(async () => {
      const before = told("sent");
      await sleep(300);
      expect(told("sent")).toBe(before);
      return Number(before);
    });

  it("is waited for", async () => {
    const { stream, first } = await begin();
    const sent = await held();
    expect(sent).toBeGreaterThan(4);
    expect(sent).toBeLessThan(count / 2);
    const responses = [first, ...(await collect(stream))];
    const numbers = responses.map((each) => each["inferResponse"].rawOutputContents[0][0]);
    expect(numbers).toEqual(Array.from({ length: count }, (_, i) => i));
  });

  it("is waited for no longer when it leaves", async () => {
    const { stream } = await begin();
    stream.on("error", () => {});
    const sent = await held();
    expect(sent).toBeLessThan(count / 2);
    stream.cancel();
    await eventually(() => expect(Number(told("cancelled"))).toBe(sent));
  });
});
