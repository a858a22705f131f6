import { describe, expect, it } from "vitest";
import { readSettings } from "../../../functions/model-uploaded/settings.ts";

function placeOf(models: string): string {
  const { bucket, prefix } = readSettings({ MODELS: models, TIDEPOOL_URL: "http://gateway:8000" });
  return `${bucket}|${prefix}`;
}

describe("readSettings", () => {
  it("finds the bucket in every form in which a repository in S3 is named", () => {
    expect(placeOf("s3://models")).toBe("models|");
    expect(placeOf("s3://models/")).toBe("models|");
    expect(placeOf("s3://models/prod/eu/")).toBe("models|prod/eu/");
    expect(placeOf("s3://127.0.0.1:7070/models/prod")).toBe("models|prod/");
    expect(placeOf("s3://https://s3.example:9000/models/prod")).toBe("models|prod/");
  });

  it("refuses what names no bucket", () => {
    for (const wrong of ["models/prod", "s3://", "s3://host:9000", "s3://host:9000/"])
      expect(() => placeOf(wrong)).toThrow(`MODELS: given '${wrong}'`);
  });
});
