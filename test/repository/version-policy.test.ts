import { describe, expect, it } from "vitest";
import { chooseVersions, noVersionChosen } from "../../repository/version-policy.ts";

const available = [3, 10, 1];

describe("chooseVersions", () => {
  it.each([
    ["the latest one without a policy", undefined, [10]],
    ["the latest one for an empty policy", {}, [10]],
    ["the latest two", { latest: { numVersions: 2 } }, [3, 10]],
    ["all that are there when more are asked for", { latest: { numVersions: 9 } }, [1, 3, 10]],
    ["none for zero", { latest: { numVersions: 0 } }, []],
    ["all", { all: {} }, [1, 3, 10]],
    ["the specific ones that are there", { specific: { versions: [10, 2, 1] } }, [1, 10]],
  ])("serves %s", (_, policy, versions) => {
    expect(chooseVersions(policy, available)).toEqual(versions);
  });
});

describe("noVersionChosen", () => {
  it("names the model", () => {
    expect(noVersionChosen("m").message).toBe(
      "at least one version must be available under the version policy of model 'm'",
    );
  });
});
