import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { commandsOf } from "./helpers/shell-commands.ts";
import { TestAuthority } from "./helpers/test-authority.ts";
import { startTidepool } from "./helpers/tidepool-process.ts";

const run = promisify(execFile);

/** Files that a command names lie in a folder of the test. */
function inFolder(command: string, folder: string): string {
  return command.replaceAll(/[\w-]+\.pem/gu, (file) => path.join(folder, file));
}

it("docs/security.md shows commands that make a certificate, serve with it, and ask who trusts it", async () => {
  const commands = commandsOf("docs/security.md");
  const create = commands.find((one) => one.startsWith("openssl "));
  const serve = commands.find((one) => one.includes("--tls-cert="));
  const calls = commands.filter((one) => one.includes("--cacert cert.pem"));
  expect(calls).toHaveLength(3);
  const clients = await TestAuthority.create();
  const { folder } = clients;
  await run("bash", ["-c", inFolder(create ?? "", folder)]);
  await clients.issue("client");
  const flags = inFolder(serve ?? "", folder)
    .split(" ")
    .slice(3);
  const server = await startTidepool([...flags, `--tls-client-ca=${clients.certificate}`]);
  onTestFinished(async () => {
    await server.stop();
    clients.remove();
  });
  for (const call of calls) {
    const here = inFolder(call, folder)
      .replace("localhost:8000", server.http.replace("127.0.0.1", "localhost"))
      .replace("localhost:8002", server.metrics.replace("127.0.0.1", "localhost"));
    // The server asks for a certificate here, so that the last command must bring one.
    const shown = call.includes("--cert ")
      ? here
      : here.replace("curl", `curl ${inFolder("--cert client.pem --key client-key.pem", folder)}`);
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const { stdout } = await run("bash", ["-c", shown]);
    expect(stdout).toMatch(/"name":"topics"|tidepool_tls_certificate_not_after_seconds/u);
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await expect(run("bash", ["-c", here.replace(/--cert \S+ --key \S+/u, "")])).rejects.toThrow(
      "Command failed",
    );
  }
}, 60_000);
