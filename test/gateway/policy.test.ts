import { describe, expect, it } from "vitest";
import { grpcNeeds, httpNeeds, type Need } from "../../gateway/policy.ts";

/** What a name alone says that its calls do; the first that fits counts. */
const httpRules: readonly (readonly [RegExp, Need])[] = [
  [/^\/v2\/health\/(?:live|ready)$/u, "health"],
  [/sharedmemory|\/logging$|\/trace\/setting$/u, "admin"],
  [/\/(?:load|unload|activate|flush)$|\/uploads\b/u, "models"],
  [/^\/v2\/jobs|\/(?:infer|generate|generate_stream)$/u, "infer"],
  [/^\/v2$|\/(?:ready|config|stats|index)$|^\/v2\/models\/:model$/u, "read"],
];

const grpcRules: readonly (readonly [RegExp, Need])[] = [
  [/^(?:Check|Watch|ServerLive|ServerReady)$/u, "health"],
  [/SharedMemory|^LogSettings$|^TraceSetting$/u, "admin"],
  [/^RepositoryModel(?:Load|Unload)$/u, "models"],
  [/Infer$/u, "infer"],
  [/Metadata$|^ModelReady$|^ModelConfig$|^ModelStatistics$|Index$/u, "read"],
];

function byRules(
  needs: Readonly<Record<string, Need>>,
  rules: readonly (readonly [RegExp, Need])[],
): Readonly<Record<string, Need | undefined>> {
  const names = Object.keys(needs);
  const fits = (name: string) => rules.find(([pattern]) => pattern.test(name))?.[1];
  return Object.fromEntries(names.map((name) => [name, fits(name)]));
}

describe("the policy", () => {
  it("asks of every HTTP path for the scope that its name calls for", () => {
    expect(httpNeeds).toEqual(byRules(httpNeeds, httpRules));
  });

  it("asks of every gRPC method for the scope that its name calls for", () => {
    expect(grpcNeeds).toEqual(byRules(grpcNeeds, grpcRules));
  });
});
