import { once } from "node:events";
import { connect } from "node:tls";
import { Client, credentials, Metadata, status } from "@grpc/grpc-js";
import type { ChannelCredentials, ClientReadableStream, ServiceError } from "@grpc/grpc-js";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  onTestFinished,
} from "vitest";
import {
  createKedaServer,
  type KedaServer,
  type KedaServerOptions,
} from "../../autoscaler/keda.ts";
import { type Fields, kedaMethods } from "../../autoscaler/keda-methods.ts";
import type { KedaPool } from "../../autoscaler/keda-metrics.ts";
import { CertificateFiles } from "../../gateway/tls/certificate-files.ts";
import { eventually } from "../helpers/eventually.ts";
import { SilentLog } from "../helpers/silent-log.ts";
import { TestAuthority } from "../helpers/test-authority.ts";
import { HandHeldObserver, quiet } from "./hand-held-observer.ts";

const methods = kedaMethods();
const digits = { name: "digits", namespace: "models", scalerMetadata: { pool: "digits" } };

/** What KEDA's operator does, by a real client. */
class Operator extends Client {
  ask(name: string, request: Fields): Promise<Fields> {
    const { path, requestSerialize, responseDeserialize } = methodOf(name);
    const { promise, resolve, reject } = Promise.withResolvers<Fields>();
    this.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      new Metadata(),
      (error: ServiceError | null, response?: Fields) => {
        if (error) reject(error);
        else resolve(response ?? {});
      },
    );
    return promise;
  }

  watch(name: string, request: Fields): Watched {
    const { path, requestSerialize, responseDeserialize } = methodOf(name);
    return new Watched(
      this.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request),
    );
  }
}

/** What came over a stream. */
class Watched {
  readonly messages: Fields[] = [];
  readonly ended: Promise<status>;
  readonly cancel: () => void;

  constructor(stream: ClientReadableStream<Fields>) {
    const { promise, resolve } = Promise.withResolvers<status>();
    stream.on("data", (message: Fields) => this.messages.push(message));
    stream.on("status", ({ code }) => resolve(code));
    stream.on("error", () => {});
    this.cancel = () => stream.cancel();
    this.ended = promise;
  }
}

function methodOf(name: string) {
  const method = methods[name];
  if (!method) throw new Error(`no method ${name}`);
  return method;
}

describe("createKedaServer", () => {
  let observer: HandHeldObserver;
  let server: KedaServer;
  let operator: Operator;
  let log: SilentLog;
  let port: number;

  const open = async (
    changes: Partial<KedaServerOptions> = {},
    channel: ChannelCredentials = credentials.createInsecure(),
  ): Promise<void> => {
    observer = new HandHeldObserver();
    log = new SilentLog();
    const pools = new Map([
      ["digits", { targetInFlight: 8 }],
      ["faces", { targetInFlight: 0.5 }],
    ]);
    server = createKedaServer({ pools, observer, log, pollMilliseconds: 5, ...changes });
    port = await server.listen("127.0.0.1", 0);
    operator = new Operator(`localhost:${port}`, channel, { "grpc.use_local_subchannel_pool": 1 });
  };

  beforeEach(() => open());
  afterEach(async () => {
    operator.close();
    await server.close(AbortSignal.timeout(10_000));
  });

  it("tells the target of each pool worker, in the new and in the deprecated field", async () => {
    expect(await operator.ask("GetMetricSpec", digits)).toEqual({
      metricSpecs: [{ metricName: "demand", targetSize: 8, targetSizeFloat: 8 }],
    });
    const faces = { scalerMetadata: { pool: "faces" } };
    expect(await operator.ask("GetMetricSpec", faces)).toEqual({
      metricSpecs: [{ metricName: "demand", targetSize: 1, targetSizeFloat: 0.5 }],
    });
  });

  it("tells the total of the demand, which KEDA divides", async () => {
    const request = { scaledObjectRef: digits, metricName: "demand" };
    observer.seen = { ...quiet, demand: 25 };
    expect(await operator.ask("GetMetrics", request)).toEqual({
      metricValues: [{ metricName: "demand", metricValue: 25, metricValueFloat: 25 }],
    });
    observer.seen = quiet;
    expect(await operator.ask("GetMetrics", request)).toEqual({
      metricValues: [{ metricName: "demand", metricValue: 0, metricValueFloat: 0 }],
    });
  });

  it("tells the oldest age only to those who ask for it", async () => {
    const scalerMetadata = { pool: "digits", oldestAgeTargetSeconds: "2.5" };
    const { metricSpecs } = await operator.ask("GetMetricSpec", { scalerMetadata });
    expect(metricSpecs).toHaveLength(2);
    expect(metricSpecs[1]).toEqual({
      metricName: "oldest_age_seconds",
      targetSize: 3,
      targetSizeFloat: 2.5,
    });
    observer.seen = { ...quiet, demand: 1, oldestAgeMilliseconds: 400 };
    const asked = { scaledObjectRef: { scalerMetadata }, metricName: "oldest_age_seconds" };
    expect(await operator.ask("GetMetrics", asked)).toEqual({
      metricValues: [{ metricName: "oldest_age_seconds", metricValue: 0, metricValueFloat: 0.4 }],
    });
  });

  it("calls a pool active that has demand, or work for a gateway that is gone", async () => {
    expect(await operator.ask("IsActive", digits)).toEqual({ result: false });
    observer.seen = { ...quiet, demand: 1 };
    expect(await operator.ask("IsActive", digits)).toEqual({ result: true });
    const worker = { id: "a", state: "ready", inFlight: 1, sequences: 0, startedAt: 0 } as const;
    observer.seen = { ...quiet, poolWorkers: [worker] };
    expect(await operator.ask("IsActive", digits)).toEqual({ result: true });
  });

  it("refuses pools, metrics and ages that it does not know, with what it expects", async () => {
    const unknown = { scalerMetadata: { pool: "ponds" } };
    const text = "metadata 'pool': 'ponds' is unknown, expected one of 'digits', 'faces'";
    const refused = { code: status.INVALID_ARGUMENT, details: text };
    await expect(operator.ask("IsActive", unknown)).rejects.toMatchObject(refused);
    await expect(operator.ask("GetMetricSpec", unknown)).rejects.toMatchObject(refused);
    await expect(operator.ask("GetMetricSpec", {})).rejects.toThrow("'' is unknown");
    await expect(operator.ask("GetMetrics", {})).rejects.toThrow("'' is unknown");
    expect(await operator.watch("StreamIsActive", unknown).ended).toBe(status.INVALID_ARGUMENT);
    expect(await operator.watch("StreamMetricSpec", unknown).ended).toBe(status.INVALID_ARGUMENT);
    await expect(
      operator.ask("GetMetrics", { scaledObjectRef: digits, metricName: "depth" }),
    ).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: "metric of pool 'digits': 'depth' is unknown, expected one of 'demand'",
    });
    await expect(
      operator.ask("GetMetricSpec", {
        scalerMetadata: { pool: "digits", oldestAgeTargetSeconds: "0" },
      }),
    ).rejects.toThrow(
      "metadata 'oldestAgeTargetSeconds': '0', expected a number of seconds above 0",
    );
  });

  it("fails while nobody knows the demand, gives no cause away, and logs it once", async () => {
    observer.seen = new Error("ECONNREFUSED 10.1.2.3:6379");
    const failed = {
      code: status.UNAVAILABLE,
      details: "pool 'digits': its demand cannot be told now; the autoscaler's log has the cause",
    };
    await expect(operator.ask("IsActive", digits)).rejects.toMatchObject(failed);
    await expect(
      operator.ask("GetMetrics", { scaledObjectRef: digits, metricName: "demand" }),
    ).rejects.toMatchObject(failed);
    expect(log.warnings).toEqual(["KEDA scaler: observing the demand fails"]);
  });

  it("streams the activity at once, then each change", async () => {
    const stream = operator.watch("StreamIsActive", digits);
    await eventually(() => expect(stream.messages).toEqual([{ result: false }]));
    observer.seen = { ...quiet, demand: 3 };
    await eventually(() => expect(stream.messages.at(-1)).toEqual({ result: true }));
    const { looks } = observer;
    await eventually(() => expect(observer.looks).toBeGreaterThan(looks + 5));
    observer.seen = quiet;
    await eventually(() => expect(stream.messages.at(-1)).toEqual({ result: false }));
    expect(stream.messages).toHaveLength(3);
  });

  it("streams a push without waiting for the poll", async () => {
    operator.close();
    await server.close(AbortSignal.timeout(10_000));
    await open({ pollMilliseconds: 2 ** 31 - 1 });
    const stream = operator.watch("StreamIsActive", digits);
    await eventually(() => expect(stream.messages).toEqual([{ result: false }]));
    observer.push("faces", 1);
    observer.push("digits", 1);
    await eventually(() => expect(stream.messages).toEqual([{ result: false }, { result: true }]));
    expect(observer.looks).toBe(2);
  });

  it("leaves the last word standing while nobody knows the demand", async () => {
    observer.seen = { ...quiet, demand: 1 };
    const stream = operator.watch("StreamIsActive", digits);
    await eventually(() => expect(stream.messages).toEqual([{ result: true }]));
    observer.seen = new Error("Redis is away");
    const { looks } = observer;
    await eventually(() => expect(observer.looks).toBeGreaterThan(looks + 5));
    observer.seen = quiet;
    await eventually(() => expect(stream.messages).toEqual([{ result: true }, { result: false }]));
  });

  it("forgets a stream that its client has ended", async () => {
    const stream = operator.watch("StreamIsActive", digits);
    await eventually(() => expect(observer.listeners).toBe(1));
    stream.cancel();
    await eventually(() => expect(observer.listeners).toBe(0));
  });

  it("streams the targets that it also tells", async () => {
    const stream = operator.watch("StreamMetricSpec", digits);
    await eventually(() => expect(stream.messages).toHaveLength(1));
    expect(stream.messages[0]).toEqual(await operator.ask("GetMetricSpec", digits));
  });

  it("ends its streams in good order when it closes", async () => {
    const activity = operator.watch("StreamIsActive", digits);
    const targets = operator.watch("StreamMetricSpec", digits);
    await eventually(() => {
      expect(activity.messages).toHaveLength(1);
      expect(targets.messages).toHaveLength(1);
    });
    const closed = server.close(AbortSignal.timeout(10_000));
    expect(await activity.ended).toBe(status.OK);
    expect(await targets.ended).toBe(status.OK);
    await closed;
    expect(observer.listeners).toBe(0);
  });

  it("says why it cannot listen", async () => {
    const pools = new Map<string, KedaPool>();
    const second = createKedaServer({ pools, observer, log });
    await expect(second.listen("127.0.0.1", port)).rejects.toThrow("EADDRINUSE");
    await second.close(AbortSignal.abort());
  });

  describe("with TLS", () => {
    let authority: TestAuthority;
    beforeAll(async () => {
      authority = await TestAuthority.create();
      await authority.issue("first");
      await authority.issue("second");
      await authority.issue("client");
    });
    afterAll(() => authority.remove());

    const secure = async (
      clientAuthority?: string,
      channel = credentials.createSsl(authority.read("first").ca),
    ): Promise<void> => {
      operator.close();
      await server.close(AbortSignal.timeout(10_000));
      authority.replace("served", "first");
      const paths = {
        ...authority.paths("served"),
        ...(clientAuthority !== undefined && { clientAuthority }),
      };
      const tls = await CertificateFiles.open({ paths, log, lookMilliseconds: 20 });
      onTestFinished(() => tls.close());
      await open({ tls }, channel);
    };

    it("asks for a client's certificate when it knows who signs them", async () => {
      await secure();
      expect(await operator.ask("IsActive", digits)).toEqual({ result: false });
      await secure(authority.certificate);
      const refused = { code: status.UNAVAILABLE };
      await expect(operator.ask("IsActive", digits)).rejects.toMatchObject(refused);
      const { ca, key, cert } = authority.read("client");
      await secure(authority.certificate, credentials.createSsl(ca, key, cert));
      expect(await operator.ask("IsActive", digits)).toEqual({ result: false });
    });

    it("shows new connections a new certificate, and keeps those that are open", async () => {
      await secure();
      const shown = async (): Promise<unknown> => {
        const { ca } = authority.read("served");
        const socket = connect({ host: "localhost", port, ca, ALPNProtocols: ["h2"] });
        await once(socket, "secureConnect");
        const { CN } = socket.getPeerCertificate().subject;
        socket.destroy();
        return CN;
      };
      const stream = operator.watch("StreamIsActive", digits);
      await eventually(() => expect(stream.messages).toHaveLength(1));
      expect(await shown()).toBe("first");
      authority.replace("served", "second");
      await eventually(async () => expect(await shown()).toBe("second"));
      observer.seen = { ...quiet, demand: 1 };
      await eventually(() => expect(stream.messages.at(-1)).toEqual({ result: true }));
    });
  });
});

describe("kedaMethods", () => {
  /** Messages as KEDA writes and reads them, byte by byte. */
  it("keeps the numbers of KEDA's wire", () => {
    const ask = methodOf("GetMetrics");
    const ref = [0x0a, 1, 0x6f, 0x12, 1, 0x6e, 0x1a, 6, 0x0a, 1, 0x6b, 0x12, 1, 0x76];
    const bytes = Buffer.from([0x0a, ref.length, ...ref, 0x12, 1, 0x6d]);
    expect(ask.requestDeserialize(bytes)).toEqual({
      scaledObjectRef: { name: "o", namespace: "n", scalerMetadata: { k: "v" } },
      metricName: "m",
    });
    const two = [0, 0, 0, 0, 0, 0, 0, 0x40];
    const metric = [0x0a, 1, 0x6d, 0x10, 2, 0x19, ...two];
    const expected = Buffer.from([0x0a, metric.length, ...metric]);
    const values = [{ metricName: "m", metricValue: 2, metricValueFloat: 2 }];
    expect(ask.responseSerialize({ metricValues: values })).toEqual(expected);
    const specs = [{ metricName: "m", targetSize: 2, targetSizeFloat: 2 }];
    expect(methodOf("GetMetricSpec").responseSerialize({ metricSpecs: specs })).toEqual(expected);
    expect(methodOf("IsActive").responseSerialize({ result: true })).toEqual(Buffer.from([8, 1]));
    expect(
      Object.values(methods).map(({ path, responseStream }) => [path, responseStream]),
    ).toEqual([
      ["/externalscaler.ExternalScaler/IsActive", false],
      ["/externalscaler.ExternalScaler/StreamIsActive", true],
      ["/externalscaler.ExternalScaler/GetMetricSpec", false],
      ["/externalscaler.ExternalScaler/GetMetrics", false],
      ["/externalscaler.ExternalScaler/StreamMetricSpec", true],
    ]);
  });
});
