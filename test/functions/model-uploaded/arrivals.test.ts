import { describe, expect, it } from "vitest";
import {
  type Arrival,
  arrivalsIn,
  isLater,
  modelOf,
} from "../../../functions/model-uploaded/arrivals.ts";
import { SeenArrivals } from "../../../functions/model-uploaded/seen-arrivals.ts";
import { s3Event } from "./s3-event.ts";

const place = { bucket: "models", prefix: "prod/" };

function arrival(more: Partial<Arrival> = {}): Arrival {
  const time = "2026-11-22T02:33:53.000Z";
  return { bucket: "models", key: "prod/m/1/model.onnx", time, sequencer: "0A", ...more };
}

describe("arrivalsIn", () => {
  it("finds what has come in events of Amazon's S3, whose keys are written as in forms", () => {
    const [found] = arrivalsIn(s3Event("prod/m/1/a+b%2Bc%C3%BC.onnx"));
    expect(found).toMatchObject({ bucket: "models", key: "prod/m/1/a b+cü.onnx" });
  });

  it("takes keys as they are where a form could not have them", () => {
    const keys = ["prod/m/1/a b.onnx", "prod/m/1/ü+x.onnx", "prod/m/1/100%.onnx"];
    expect(keys.flatMap((key) => arrivalsIn(s3Event(key))).map(({ key }) => key)).toEqual(keys);
  });

  it("passes over what tells of no object that came", () => {
    const removed = s3Event("prod/m/1/x", { eventName: "s3:ObjectRemoved:Delete" });
    const test = { Bucket: "b", Event: "s3:TestEvent", Service: "S3" };
    for (const event of [removed, test, {}, null, [], "x", { Records: "x" }, { Records: [1, {}] }])
      expect(arrivalsIn(event)).toEqual([]);
    expect(arrivalsIn(s3Event("x".repeat(1025)))).toEqual([]);
  });

  it("bounds the records of one event", () => {
    const [record] = s3Event("prod/m/1/x").Records;
    const Records = Array.from({ length: 1001 }, () => record);
    expect(() => arrivalsIn({ Records })).toThrow("given 1001 records, expected at most 1000");
  });
});

describe("modelOf", () => {
  it.each([
    ["prod/m/1/model.onnx", "m"],
    ["prod/m/config.pbtxt", "m"],
    ["prod/m/1/", "m"],
    ["prod/m", undefined],
    ["prod//x", undefined],
    ["other/m/1/model.onnx", undefined],
    ["prod/.tidepool-uploads/00/upload.json", undefined],
    ["prod/m/.tidepool-hidden-2", undefined],
    ["prod/../x", undefined],
  ])("takes %s to be of %s", (key, model) => {
    expect(modelOf(arrival({ key }), place)).toBe(model);
    expect(modelOf(arrival({ key, bucket: "another" }), place)).toBeUndefined();
  });
});

describe("SeenArrivals", () => {
  it("knows events that come twice, or after later ones of the same object", () => {
    const seen = new SeenArrivals();
    const late = arrival({ sequencer: "00B0" });
    expect([late, late, arrival({ sequencer: "0AF" })].map((one) => seen.isNew(one))).toEqual([
      true,
      false,
      false,
    ]);
    expect(seen.isNew(arrival({ sequencer: "B1" }))).toBe(true);
    expect(seen.isNew(arrival({ key: "prod/m/1/other", sequencer: "01" }))).toBe(true);
  });

  it("believes a later time more than a sequencer that has begun anew", () => {
    const again = arrival({ time: "2026-11-22T02:34:00.000Z", sequencer: "1" });
    expect(isLater(again, arrival({ sequencer: "FF" }))).toBe(true);
    expect(isLater(arrival({ sequencer: "FF" }), again)).toBe(false);
  });
});
