import { describe, expect, it } from "vitest";
import { checkSettings } from "../../cli/check-settings.ts";
import { readSettings } from "../../cli/settings.ts";

function check(...args: readonly string[]): () => void {
  return () => checkSettings(readSettings(["--model-repository=/models", ...args], {}).settings);
}

const everywhere = ["--http-address=0.0.0.0", "--grpc-address=0.0.0.0"];
const tokens = ["--jwt-issuer=https://a.example", "--jwt-audience=b"];

describe("checkSettings, who may call", () => {
  it.each([
    ["--api-keys=keys.json"],
    ["--api-keys=redis"],
    ["--jwt-jwks-url=https://a.example/jwks", ...tokens],
    ["--jwt-key-file=key.pem", ...tokens],
  ])("takes any address with %s", (...flags) => {
    expect(check(...everywhere, ...flags)).not.toThrow();
  });

  it("tells of keys where an address needs them", () => {
    expect(check(...everywhere)).toThrow("ask for one by --api-keys, add --allow-anonymous if");
  });

  it("refuses keys and callers without any", () => {
    expect(check("--api-keys=a", "--allow-anonymous")).toThrow("--allow-anonymous: given with");
  });

  it("takes metrics anywhere only with keys, or if somebody says so", () => {
    const metrics = "--metrics-address=0.0.0.0";
    expect(check(metrics)).toThrow("--metrics-address: given 0.0.0.0");
    expect(check(metrics, "--metrics-anonymous")).not.toThrow();
    expect(check(metrics, "--api-keys=a")).not.toThrow();
  });

  it("takes the metrics of pool workers and autoscalers as those of gateways", () => {
    const metrics = "--metrics-address=0.0.0.0";
    for (const port of ["--pool-metrics-port=9", "--autoscaler-metrics-port=9"]) {
      expect(check(metrics, port)).toThrow("--metrics-address: given 0.0.0.0");
      expect(check(metrics, port, "--api-keys=redis")).not.toThrow();
    }
  });

  it("answers KEDA on other machines only with a certificate, or if somebody says so", () => {
    const keda = ["--allow-keda", "--keda-address=0.0.0.0"];
    const tls = ["--keda-server-cert=a", "--keda-server-key=b"];
    expect(check("--allow-keda")).not.toThrow();
    expect(check("--keda-address=0.0.0.0")).not.toThrow();
    for (const more of [[], tls, ["--api-keys=redis"]])
      expect(check(...keda, ...more)).toThrow("--keda-address: given 0.0.0.0");
    expect(check(...keda, "--keda-anonymous")).not.toThrow();
    expect(check(...keda, "--allow-anonymous")).not.toThrow();
    expect(check(...keda, ...tls, "--keda-root-cert=c")).not.toThrow();
    for (const flag of ["--keda-server-cert=a", "--keda-server-key=b", "--keda-root-cert=c"])
      expect(check(...keda, flag)).toThrow("expected it and --keda-server-key together");
  });

  it.each<[flags: readonly string[], message: string]>([
    [["--jwt-key-file=a", "--jwt-jwks-url=https://a.example", ...tokens], "expected one of them"],
    [["--jwt-key-file=a"], "expected --jwt-issuer and --jwt-audience, too"],
    [["--jwt-key-file=a", "--jwt-issuer=a"], "expected --jwt-issuer and --jwt-audience, too"],
    [tokens, "--jwt-issuer: expected --jwt-jwks-url or --jwt-key-file, too"],
    [["--jwt-jwks-url=http://a.example/jwks", ...tokens], "expected a URL of https"],
    [["--jwt-jwks-url=http://127.0.0.1.a.example/", ...tokens], "expected a URL of https"],
    [["--jwt-jwks-url=file:///keys", ...tokens], "expected a URL of https"],
    [["--jwt-jwks-url=keys", ...tokens], "expected a URL of https"],
  ])("refuses %j", (flags, message) => {
    expect(check(...flags)).toThrow(message);
  });

  it.each(["none", "HS256", "RS1", ""])("takes no token that is signed with '%s'", (algorithm) => {
    expect(check(`--jwt-algorithm=${algorithm}`)).toThrow("expected algorithm with a public key");
  });

  it.each(["http://127.0.0.1:1/", "http://localhost/", "http://[::1]:8/", "https://a.example/k"])(
    "takes keys from %s",
    (url) => {
      expect(check(`--jwt-jwks-url=${url}`, ...tokens)).not.toThrow();
    },
  );
});
