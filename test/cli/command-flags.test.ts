import { describe, expect, it } from "vitest";
import { checkCommandFlags } from "../../cli/command-flags.ts";
import { commandHelp } from "../../cli/help.ts";

describe("checkCommandFlags", () => {
  it.each([
    ["serve", "--redis-url=redis://127.0.0.1"],
    ["serve", "--pool-config=tidepool.yaml"],
    ["serve", "--pool-idle-seconds=1"],
    ["serve", "--allow-keda"],
    ["serve", "--job-store=s3://bucket/jobs"],
    ["serve", "--pool-metrics-port=8003"],
    ["serve", "--autoscaler-metrics-port=8004"],
    ["serve", "--key-name=a"],
    ["gateway", "--pool=a"],
    ["autoscaler", "--pool-worker-id=a"],
    ["dev", "--decided-at=1"],
  ])("refuses for %s what would change nothing: %s", (command, flag) => {
    expect(() => checkCommandFlags(command, [flag])).toThrow(
      `${flag.split("=")[0]}: given to ${command}, which has no use for it; it is for `,
    );
    expect(commandHelp(command, 80)).not.toContain(`  ${flag.split("=")[0]}=`);
  });

  it("takes what a command is started with by another", () => {
    const shared = ["--http-port=1", "--allow-keda", "--pool-max-workers=2", "--end-with-stdin"];
    for (const command of ["gateway", "pool", "autoscaler", "dev"])
      expect(() => checkCommandFlags(command, shared)).not.toThrow();
    expect(() => checkCommandFlags("pool", ["--pool=a", "--decided-at=1"])).not.toThrow();
  });

  it("refuses settings of the default pool beside a file of pools", () => {
    const flags = ["--pool-config=tidepool.yaml", "--pool-max-workers", "2"];
    expect(() => checkCommandFlags("dev", flags)).toThrow(
      "--pool-max-workers: given with --pool-config, expected one of them",
    );
  });
});
