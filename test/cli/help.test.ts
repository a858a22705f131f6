import { describe, expect, it } from "vitest";
import { commandHelp } from "../../cli/help.ts";
import { keysCommand } from "../helpers/keys-command.ts";

describe("commandHelp", () => {
  it("names everything that tidepool keys can do", async () => {
    const [usage = ""] = commandHelp("keys", 100).split("\n");
    const [, shown = ""] = /keys (?<verbs>[a-z|]+) /u.exec(usage) ?? [];
    const refusal = await keysCommand("nothing").then(() => "", String);
    const [, known = "none"] = /expected one of (?<verbs>[^;]+);/u.exec(refusal) ?? [];
    const verbs = shown.split("|").toSorted();
    expect(verbs).toEqual(known.split(", ").toSorted());
  });
});
