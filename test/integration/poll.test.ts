import { describe, expect, it } from "vitest";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { eventually } from "../helpers/eventually.ts";
import { serving } from "../helpers/serving.ts";

// Every look takes a second to come: they wait for it together.
describe.concurrent("--model-control-mode=poll", () => {
  const running = serving(
    (models) => {
      models.model("old", { 1: addingModel(1) });
      models.model("untouched", { 1: addingModel(5) });
    },
    "--model-control-mode=poll",
    "--repository-poll-secs=1",
  );

  async function ask(name: string): Promise<number | string> {
    const answer = await running.http.infer(name, addingBody);
    return answer.status === 200 ? JSON.parse(answer.text).outputs[0].data[0] : answer.text;
  }

  async function reasonOf(name: string): Promise<string> {
    const index = JSON.parse((await running.http.post("/v2/repository/index")).text);
    return index.find((line: { name: string }) => line.name === name)?.reason ?? "";
  }

  const expectAnswer = (name: string, answer: number): Promise<void> =>
    eventually(async () => expect(await ask(name)).toBe(answer));

  it("serves a model that is added, changed and removed", async () => {
    running.models.model("new", { 1: addingModel(10) });
    await expectAnswer("new", 10);
    running.models.model("new", { 1: addingModel(20) });
    await expectAnswer("new", 20);
    running.models.model("new", { 2: addingModel(30) });
    await expectAnswer("new", 30);
    running.models.remove("new");
    await eventually(async () => expect(await ask("new")).toContain("unknown model: 'new'"));
    expect(await ask("untouched")).toBe(5);
  });

  it("serves a model as soon as the whole of its file is there", async () => {
    const file = addingModel(7);
    running.models.model("copied", { 1: file.subarray(0, file.length / 2) });
    await eventually(async () => expect(await reasonOf("copied")).not.toBe(""));
    expect(await ask("copied")).not.toBe(7);
    running.models.model("copied", { 1: file });
    await expectAnswer("copied", 7);
    expect(await reasonOf("copied")).toBe("");
  });

  it("goes on with the old file while the new one is bad, and says why", async () => {
    running.models.write("old/1/model.onnx", "this is no model");
    await eventually(async () => expect(await reasonOf("old")).toContain("old"));
    expect(await ask("old")).toBe(1);
    expect((await running.http.get("/v2/models/old/ready")).status).toBe(200);
    running.models.write("old/1/model.onnx", addingModel(2));
    await expectAnswer("old", 2);
    expect(await reasonOf("old")).toBe("");
  });

  it("refuses to load what a client asks for", async () => {
    const answer = await running.http.post("/v2/repository/models/old/load");
    expect(answer.status).toBe(503);
    expect(answer.text).toContain("not allowed if polling is enabled");
  });
});
