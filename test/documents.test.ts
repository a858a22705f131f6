import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { python } from "./conformance/python.ts";
import { commandsOf } from "./helpers/shell-commands.ts";
import { startTidepool, type TidepoolProcess } from "./helpers/tidepool-process.ts";

const root = path.resolve(import.meta.dirname, "..");
const run = promisify(execFile);

/** Commands that set up and serve, or test; tests of their own run them. */
const elsewhere = /^(?:npm (?:start|test)|npx tidepool dev)\b/u;

/** What each of the other commands must print. */
const expected: readonly (readonly [start: string, output: RegExp])[] = [
  ["curl -s localhost:8000/v2/models/topics/infer", /"data":\["\d\.\d+:\d:sport"\]/u],
  ["node examples/clients/classify-digits.ts", /\b39 of 40 right\n$/u],
  ["node examples/clients/classify-topics.ts", /^sport .*Two goals/mu],
  ["python3 examples/clients/classify_digits.py http", /\b39 of 40 right\n$/u],
  ["python3 examples/clients/classify_digits.py grpc", /\b39 of 40 right\n$/u],
  ["examples/clients/classify-digit.sh 7", /"data":\["\d\.\d+:\d:\w+","\d\.\d+:\d:\w+"/u],
];

describe("README.md", () => {
  it("shows a command that starts the distributed shape", async () => {
    const command = commandsOf("README.md").find((one) => one.startsWith("npx tidepool dev "));
    const dev = await startTidepool(command?.split(" ").slice(3) ?? [], "dev");
    const [infer] = commandsOf("README.md").filter((one) => one.startsWith("curl "));
    const here = (infer ?? "").replace("localhost:8000", dev.http);
    const { stdout } = await run("bash", ["-c", here], { cwd: root });
    await dev.stop();
    expect(stdout).toMatch(expected[0]?.[1] ?? /^$/u);
  }, 60_000);
});

let server: TidepoolProcess;
beforeAll(async () => {
  server = await startTidepool(["--model-repository=examples/models"]);
});
afterAll(() => server.stop());

describe.each(["README.md", "examples/README.md"])("%s", (page) => {
  const commands = commandsOf(page).filter((command) => !elsewhere.test(command));

  it.each(commands)("shows a command that works: %s", async (command) => {
    const [, output] = expected.find(([start]) => command.startsWith(start)) ?? [];
    expect(output, "a command without an expectation").toBeDefined();
    const here = command
      .replace("localhost:8000", server.http)
      .replace(
        /^(?<client>node \S+(?:digits|topics).ts|examples\S+ 7)/u,
        `$<client> http://${server.http}`,
      )
      .replace(/^python3 (?<client>\S+ http)/u, `${python} $<client> ${server.http}`)
      .replace(/^python3 (?<client>\S+ grpc)/u, `${python} $<client> ${server.grpc}`);
    const { stdout } = await run("bash", ["-c", here], { cwd: root });
    expect(stdout).toMatch(output ?? /^$/u);
  });
});

describe("examples/clients", () => {
  it("takes sentences before the URL of the server", async () => {
    const url = `http://${server.http}`;
    const args = ["examples/clients/classify-topics.ts", "Two goals won the match!", url];
    const { stdout } = await run(process.execPath, args, { cwd: root });
    expect(stdout).toMatch(/^sport .*Two goals won the match!\n$/u);
  });

  it.each(["0", "41", "7p", "http://127.0.0.1:8000"])(
    "has no digit of number %s",
    async (number) => {
      const asked = run("examples/clients/classify-digit.sh", [number], { cwd: root });
      await expect(asked).rejects.toMatchObject({
        code: 2,
        stdout: "",
        stderr: `classify-digit.sh: given '${number}', expected a number from 1 to 40\n`,
      });
    },
  );
});
