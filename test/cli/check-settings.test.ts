import { describe, expect, it } from "vitest";
import { checkSettings } from "../../cli/check-settings.ts";
import { readSettings } from "../../cli/settings.ts";

function check(...args: readonly string[]): () => void {
  return () => checkSettings(readSettings(["--model-repository=/models", ...args], {}).settings);
}

describe("checkSettings", () => {
  it("takes the defaults with a repository", () => {
    expect(check()).not.toThrow();
  });

  it("asks for a repository", () => {
    expect(() => checkSettings(readSettings([], {}).settings)).toThrow("--model-repository");
  });

  it.each(["--http-address=0.0.0.0", "--grpc-address=::", "--metrics-address=192.168.1.4"])(
    "refuses %s without --allow-anonymous, and says what to do",
    (flag) => {
      expect(check(flag)).toThrow("add --allow-anonymous");
      expect(check(flag, "--allow-anonymous")).not.toThrow();
    },
  );

  it("serves metrics beside HTTP unless told otherwise", () => {
    expect(check("--http-address=0.0.0.0", "--allow-http=false")).toThrow("--metrics-address");
  });

  it.each(["127.0.0.1", "127.1.2.3", "::1", "localhost"])("takes %s for loopback", (address) => {
    expect(check(`--http-address=${address}`)).not.toThrow();
  });

  it("does not mind the address of what is not served", () => {
    expect(check("--grpc-address=0.0.0.0", "--allow-grpc=false")).not.toThrow();
  });

  it("takes --load-model in explicit mode only", () => {
    expect(check("--load-model=a")).toThrow("--load-model: given with --model-control-mode=none");
    expect(check("--load-model=a", "--model-control-mode=explicit")).not.toThrow();
  });

  it("takes --load-model=* alone only", () => {
    const explicit = "--model-control-mode=explicit";
    expect(check(explicit, "--load-model=*")).not.toThrow();
    expect(check(explicit, "--load-model=*", "--load-model=a")).toThrow("expected '*' alone");
  });

  it("asks for what TLS needs", () => {
    const files = ["--grpc-server-cert=c", "--grpc-server-key=k"];
    expect(check("--grpc-use-ssl")).toThrow("expected --grpc-server-cert");
    expect(check("--grpc-use-ssl", ...files)).not.toThrow();
    expect(check("--grpc-use-ssl-mutual", ...files)).toThrow("expected --grpc-root-cert");
  });
});
