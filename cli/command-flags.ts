import { flagsFromArguments } from "./arguments.ts";
import type { Flag } from "./flag.ts";
import { accessFlags, keyFlags } from "./flags/access.ts";
import { autoscalerFlags } from "./flags/autoscaler.ts";
import { edgeKeyFlags } from "./flags/edge.ts";
import { jobFlags } from "./flags/jobs.ts";
import { keyLimitFlags } from "./flags/limits.ts";
import { logFlags, metricsFlags } from "./flags/observing.ts";
import { defaultPoolFlags, poolFlags, poolWorkerFlags } from "./flags/pools.ts";
import { pushFlags } from "./flags/push.ts";
import { UsageError } from "./usage-error.ts";

type Flags = Readonly<Record<string, Flag>>;

const serving = ["serve", "gateway", "pool", "autoscaler", "dev"];
const distributed = ["gateway", "pool", "autoscaler", "dev"];

/** Which commands have a use for a flag; all have one for the others. `dev` hands its own to those that it starts. */
const uses: readonly (readonly [flags: Flags, commands: readonly string[]])[] = [
  [poolWorkerFlags, ["pool"]],
  [keyFlags, ["keys"]],
  [pushFlags, ["push"]],
  [keyLimitFlags, ["keys"]],
  [edgeKeyFlags, ["keys"]],
  [{ "api-keys": accessFlags["api-keys"] }, [...serving, "keys"]],
  [{ "redis-url": poolFlags["redis-url"] }, [...distributed, "keys"]],
  [{ "audit-log": logFlags["audit-log"] }, [...serving, "keys"]],
  [{ "job-store": jobFlags["job-store"] }, distributed],
  [{ "pool-metrics-port": metricsFlags["pool-metrics-port"] }, distributed],
  [{ "autoscaler-metrics-port": metricsFlags["autoscaler-metrics-port"] }, distributed],
  [poolFlags, distributed],
  [defaultPoolFlags, distributed],
  [autoscalerFlags, distributed],
];

/**
 * Throws for a flag on the command line that would change nothing, because whoever gave it expects something. In the
 * environment, which several commands may share, such flags are fine.
 */
export function checkCommandFlags(command: string, args: readonly string[]): void {
  const given = flagsFromArguments(args);
  for (const name of given.keys()) {
    if (hasUseFor(command, name)) continue;
    const commands = commandsFor(name)?.join(", ") ?? "those that serve";
    throw new UsageError(
      `--${name}: given to ${command}, which has no use for it; it is for ${commands}`,
    );
  }
  if (!given.has("pool-config")) return;
  const unheeded = Object.keys(defaultPoolFlags).find((name) => given.has(name));
  if (unheeded !== undefined) {
    throw new UsageError(
      `--${unheeded}: given with --pool-config, expected one of them: that file says it for each pool`,
    );
  }
}

/** True unless the flag changes nothing for the command. */
export function hasUseFor(command: string, flagName: string): boolean {
  return commandsFor(flagName)?.includes(command) ?? serving.includes(command);
}

function commandsFor(flagName: string): readonly string[] | undefined {
  return uses.find(([flags]) => flagName in flags)?.[1];
}
