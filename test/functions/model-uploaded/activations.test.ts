import { afterEach, describe, expect, it } from "vitest";
import { Activations } from "../../../functions/model-uploaded/activations.ts";
import { createApp } from "../../../functions/model-uploaded/app.ts";
import { SeenArrivals } from "../../../functions/model-uploaded/seen-arrivals.ts";
import { eventually } from "../../helpers/eventually.ts";
import { s3Event } from "./s3-event.ts";

const secret = "a-secret-of-this-test";
let activations: Activations | undefined;
afterEach(() => activations?.close());

/** Notes what is activated, which takes until the test says so. */
function noted(quietMilliseconds = 20) {
  const began: string[] = [];
  const done: string[] = [];
  const ends: (() => void)[] = [];
  activations = new Activations({
    quietMilliseconds,
    activate: async (model) => {
      began.push(model);
      await new Promise<void>((resolve) => ends.push(resolve));
      return [];
    },
    onDone: (model) => done.push(model),
    onError: () => {},
  });
  const app = createApp({
    place: { bucket: "models", prefix: "" },
    secret,
    activations,
    seen: new SeenArrivals(),
  });
  const post = async (body: string, authorization = `Bearer ${secret}`): Promise<Response> =>
    app.request("/events", { method: "POST", body, headers: { authorization } });
  return { began, done, ends, activations, post };
}

function basic(text: string): string {
  return `Basic ${Buffer.from(text).toString("base64")}`;
}

describe("Activations", () => {
  it("waits until no more files come, and never activates one model twice at a time", async () => {
    const { began, done, ends, activations: all } = noted();
    for (let i = 0; i < 5; i++) all.want("m");
    await eventually(() => expect(began).toEqual(["m"]));
    all.want("m");
    all.want("other");
    await eventually(() => expect(began).toEqual(["m", "other"]));
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(began).toEqual(["m", "other"]);
    for (const end of ends) end();
    await eventually(() => expect(began).toEqual(["m", "other", "m"]));
    ends.at(-1)?.();
    await eventually(() => expect(done).toEqual(["m", "other", "m"]));
  });

  it("bounds how many models wait", () => {
    const { activations: all } = noted(10_000);
    for (let i = 0; i < 1000; i++) expect(all.want(`m${i}`)).toBe(true);
    expect(all.want("one more")).toBe(false);
    expect(all.want("m7")).toBe(true);
  });
});

describe("POST /events", () => {
  it("takes events of those who show the secret, as a token or a password", async () => {
    const { post, began } = noted();
    for (const wrong of ["", "Bearer", `Bearer ${secret}x`, basic("s3:other"), basic("s3:")])
      expect((await post("{}", wrong)).status).toBe(401);
    expect((await post(JSON.stringify(s3Event("m/1/x")), basic(`s3:${secret}`))).status).toBe(200);
    const answer = await post(JSON.stringify(s3Event("n/1/x")));
    expect(await answer.json()).toEqual({ models: ["n"] });
    await eventually(() => expect(began.toSorted()).toEqual(["m", "n"]));
  });

  it("takes an event again that found too many models waiting", async () => {
    const { activations: all, post } = noted(10_000);
    for (let i = 0; i < 1000; i++) all.want(`m${i}`);
    const event = JSON.stringify(s3Event("n/1/x"));
    expect((await post(event)).status).toBe(503);
    all.close();
    expect(await (await post(event)).json()).toEqual({ models: ["n"] });
  });

  it("bounds what it reads, and refuses what is no JSON", async () => {
    const { post } = noted();
    expect((await post("x")).status).toBe(400);
    expect((await post(`"${"x".repeat(2 ** 20)}"`)).status).toBe(413);
    const [record] = s3Event("m/1/x").Records;
    const Records = Array.from({ length: 1001 }, () => record);
    expect((await post(JSON.stringify({ Records }))).status).toBe(400);
  });
});
