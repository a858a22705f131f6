import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { deploy, type DeployedGateway, type Deployment } from "../helpers/deployment.ts";
import { eventually } from "../helpers/eventually.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";

async function ask({ http }: DeployedGateway, name: string): Promise<number | string> {
  const answer = await http.infer(name, addingBody);
  return answer.status === 200 ? JSON.parse(answer.text).outputs[0].data[0] : answer.text;
}

/** Why versions of a model do not serve. */
async function reasonsOf({ http }: DeployedGateway, name: string): Promise<string> {
  const index: { name: string; reason?: string }[] = JSON.parse(
    (await http.post("/v2/repository/index")).text,
  );
  return index.map((line) => (line.name === name ? line.reason : "")).join("");
}

describe("two gateways with --model-control-mode=poll", () => {
  const models = new ModelDirectory();
  let deployment: Deployment;
  beforeAll(async () => {
    models.model("steady", { 1: addingModel(1) });
    models.model("old", { 1: addingModel(1) });
    deployment = await deploy({
      models: models.path,
      gateways: 2,
      flags: ["--model-control-mode=poll"],
      // The second would not look again while the test runs.
      gatewayFlags: (gateway) => [`--repository-poll-secs=${gateway === 0 ? 1 : 86_400}`],
    });
  }, 60_000);
  afterAll(async () => {
    await deployment.stop();
    models.remove();
  });

  const everywhere = (assertion: (gateway: DeployedGateway) => Promise<void>): Promise<unknown> =>
    Promise.all(deployment.gateways.map((one) => eventually(() => assertion(one), 20_000)));

  const expectAnswer = (name: string, answer: number): Promise<unknown> =>
    everywhere(async (gateway) => expect(await ask(gateway, name)).toBe(answer));

  it("follow each other to a new model, to another version, and to its end", async () => {
    await expectAnswer("old", 1);
    models.model("new", { 1: addingModel(10) });
    await expectAnswer("new", 10);
    models.model("new", { 2: addingModel(20) });
    await expectAnswer("new", 20);
    models.remove("new");
    await everywhere(async (gateway) => expect(await ask(gateway, "new")).toContain("unknown"));
    await expectAnswer("steady", 1);
  }, 60_000);

  it("both go on with the old version while the new one is bad, and say why", async () => {
    models.model("old", { 2: "this is no model" });
    await everywhere(async (gateway) => expect(await reasonsOf(gateway, "old")).not.toBe(""));
    await expectAnswer("old", 1);
    models.model("old", { 2: addingModel(2) });
    await expectAnswer("old", 2);
  }, 60_000);
});
