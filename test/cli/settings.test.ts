import { describe, expect, it } from "vitest";
import { readSettings, type Settings } from "../../cli/settings.ts";

function settingsOf(args: readonly string[], environment: NodeJS.ProcessEnv = {}): Settings {
  return readSettings(args, environment).settings;
}

describe("readSettings", () => {
  it("gives every flag's default without flags", () => {
    const { settings, warnings } = readSettings([], {});
    expect(warnings).toEqual([]);
    expect(settings).toMatchObject({
      httpAddress: "127.0.0.1",
      httpPort: 8000,
      grpcPort: 8001,
      metricsPort: 8002,
      modelRepository: [],
      modelControlMode: "none",
      exitOnError: true,
      exitTimeoutSecs: 30,
      allowAnonymous: false,
    });
  });

  it("takes --flag=v and --flag v", () => {
    expect(settingsOf(["--http-port=9000", "--grpc-port", "9001"])).toMatchObject({
      httpPort: 9000,
      grpcPort: 9001,
    });
  });

  it.each(["true", "True", "1"])("takes %s for true", (text) => {
    expect(settingsOf(["--reuse-http-port", text]).reuseHttpPort).toBe(true);
  });

  it.each(["false", "False", "0"])("takes %s for false", (text) => {
    expect(settingsOf([`--allow-http=${text}`]).allowHttp).toBe(false);
  });

  it("takes a boolean that stands alone for true", () => {
    const settings = settingsOf(["--allow-anonymous", "--split-oversized-batches", "--id=x"]);
    expect(settings).toMatchObject({ allowAnonymous: true, splitOversizedBatches: true, id: "x" });
  });

  it("collects the values of a flag that may be repeated", () => {
    const args = ["--load-model=a", "--load-model", "b"];
    expect(settingsOf(args).loadModel).toEqual(["a", "b"]);
    expect(settingsOf([], { TIDEPOOL_LOAD_MODEL: "a;b" }).loadModel).toEqual(["a", "b"]);
  });

  it("lets the last of several values win", () => {
    expect(settingsOf(["--id=a", "--id=b"]).id).toBe("b");
  });

  it("lets the command line win over the environment", () => {
    const environment = { TIDEPOOL_HTTP_PORT: "1", TIDEPOOL_GRPC_PORT: "2" };
    expect(settingsOf(["--http-port=3"], environment)).toMatchObject({ httpPort: 3, grpcPort: 2 });
  });

  it("does not take a Kubernetes service link for a port", () => {
    expect(settingsOf([], { TIDEPOOL_HTTP_PORT: "tcp://10.0.0.7:80" }).httpPort).toBe(8000);
  });

  it("warns of a variable that is no flag's", () => {
    const environment = { TIDEPOOL_HTTP_PRT: "1", TIDEPOOL_HTTP_PORT: "2", PATH: "/bin" };
    expect(readSettings([], environment).warnings).toEqual([
      "TIDEPOOL_HTTP_PRT has no effect: it is the variable of no flag",
    ]);
  });

  it("does not warn of what Kubernetes says about services", () => {
    const environment = {
      TIDEPOOL_SERVICE_HOST: "10.0.0.7",
      TIDEPOOL_SERVICE_PORT_HTTP: "80",
      TIDEPOOL_PORT: "tcp://10.0.0.7:80",
      TIDEPOOL_PORT_80_TCP_ADDR: "10.0.0.7",
    };
    expect(readSettings([], environment).warnings).toEqual([]);
  });

  it("reads what restricts a part of the API", () => {
    const [restricted] = settingsOf([
      "--http-restricted-api=inference,model-config:X-Key=a=b:c",
    ]).httpRestrictedApi;
    expect(restricted).toEqual({
      categories: ["inference", "model-config"],
      restriction: { key: "X-Key", value: "a=b:c" },
    });
  });

  it("maps old spellings to their successors", () => {
    expect(settingsOf(["--strict-model-config=true"]).disableAutoCompleteConfig).toBe(true);
    expect(settingsOf(["--strict-model-config=false"]).disableAutoCompleteConfig).toBe(false);
    const both = settingsOf(["--model-store=/a", "--model-repository=/b"]);
    expect(both.modelRepository.toSorted()).toEqual(["/a", "/b"]);
    const cached = readSettings(["--response-cache-byte-size=4096"], {});
    expect(cached.settings.cacheConfig).toEqual(["local,size=4096"]);
    expect(cached.warnings).toHaveLength(1);
  });

  it.each([
    [["--http-prt=1"], "unknown flag --http-prt; did you mean --http-port?"],
    [["--model-repo=/m"], "unknown flag --model-repo; see tidepool serve --help"],
    [["models"], "given 'models', expected a flag, as in --http-port=8000"],
    [["--"], "given '--', expected a flag"],
    [["--http-port"], "--http-port: given nothing, expected a value"],
    [["--http-port=http"], "--http-port: given 'http', expected port, 0 to 65535"],
    [["--http-port=65536"], "--http-port: given '65536', expected port"],
    [["--allow-http=yes"], "--allow-http: given 'yes', expected boolean"],
    [["--model-repository="], "--model-repository: given '', expected path"],
    [
      ["--model-control-mode=auto"],
      "--model-control-mode: given 'auto', expected none|poll|explicit",
    ],
    [["--http-header-forward-pattern=("], "--http-header-forward-pattern: given '('"],
    [["--metrics-interval-ms=0"], "--metrics-interval-ms: given '0', expected number above 0"],
    [["--trace-rate=x"], "--trace-rate: given 'x', expected integer, 0 or more"],
    [["--http-restricted-api=inference"], "--http-restricted-api: given 'inference', expected"],
    [["--http-restricted-api=all:a=b"], "--http-restricted-api: given 'all:a=b', expected"],
    [["--grpc-restricted-protocol=trace:a b=c"], "--grpc-restricted-protocol: given"],
    [["--model-namespacing=true"], "--model-namespacing is refused"],
  ])("refuses %j", (args, message) => {
    expect(() => settingsOf(args)).toThrow(message);
  });

  it("refuses a wrong value in the environment by the flag's name", () => {
    expect(() => settingsOf([], { TIDEPOOL_HTTP_PORT: "x" })).toThrow("--http-port: given 'x'");
  });
});
