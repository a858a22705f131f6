import { describe, expect, it } from "vitest";
import { checkSettings, requireModels } from "../../cli/check-settings.ts";
import { readSettings } from "../../cli/settings.ts";

function check(...args: readonly string[]): () => void {
  return () => checkSettings(readSettings(["--model-repository=/models", ...args], {}).settings);
}

describe("checkSettings", () => {
  it("takes the defaults with a repository", () => {
    expect(check()).not.toThrow();
  });

  it("asks for a repository", () => {
    expect(() => requireModels(readSettings([], {}).settings)).toThrow("--model-repository");
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

  it("refuses a port for two endpoints that are served", () => {
    expect(check("--grpc-port=8000")).toThrow("--grpc-port: given 8000, which is --http-port, too");
    expect(check("--metrics-port=8001", "--reuse-grpc-port")).toThrow("--metrics-port: given 8001");
    expect(check("--grpc-port=8000", "--allow-http=false")).not.toThrow();
    expect(check("--grpc-port=8000", "--grpc-address=127.0.0.2")).not.toThrow();
    expect(check("--grpc-port=0", "--http-port=0", "--metrics-port=0")).not.toThrow();
  });

  it.each(["--http-restricted-api", "--grpc-restricted-protocol"])(
    "refuses %s for a category that is restricted twice",
    (flag) => {
      expect(check(`${flag}=health,trace:a=1`, `${flag}=trace:b=2`)).toThrow(
        `${flag}: given 'trace' twice`,
      );
      expect(check(`${flag}=health:a=1`, `${flag}=trace:b=2`)).not.toThrow();
    },
  );

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
    expect(check("--tls-cert=c")).toThrow("--tls-cert, --tls-key: given one of them");
    expect(check("--tls-key=k")).toThrow("--tls-cert, --tls-key: given one of them");
    expect(check("--tls-client-ca=a")).toThrow("--tls-client-ca: expected --tls-cert");
    expect(check("--tls-cert=c", "--tls-key=k", "--tls-client-ca=a")).not.toThrow();
  });

  it("lets no page of any origin act as the user of a browser", () => {
    const credentials = "--cors-allow-credentials";
    expect(check(credentials)).toThrow("--cors-allow-credentials: expected --cors-allow-origin");
    expect(check(credentials, "--cors-allow-origin=*")).toThrow("and not *");
    expect(check(credentials, "--cors-allow-origin=https://app.example")).not.toThrow();
    expect(check("--cors-allow-origin=*")).not.toThrow();
  });

  it.each(["https://app.example/", "https://app.example/path", "app.example", "https://*.example"])(
    "takes no %s for an origin",
    (given) => {
      expect(check(`--cors-allow-origin=${given}`)).toThrow("expected origin as in");
    },
  );
});
