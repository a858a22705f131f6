import { expect, it } from "vitest";
import { OpenCalls } from "../../../gateway/grpc/open-calls.ts";

it("asks calls to end that are open when it is closed, and those that come later, but none that has ended", () => {
  const asked: string[] = [];
  const call = (name: string) => ({ close: () => asked.push(name) });
  const ended = call("ended");
  const calls = new OpenCalls();
  calls.add(call("open"));
  calls.add(ended);
  calls.delete(ended);
  calls.close();
  calls.add(call("late"));
  expect(asked).toEqual(["open", "late"]);
});
