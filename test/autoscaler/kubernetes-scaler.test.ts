import type { ServerResponse } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { podAccess } from "../../autoscaler/kubernetes-api.ts";
import { KubernetesScaler } from "../../autoscaler/kubernetes-scaler.ts";
import type { KubernetesScalerOptions } from "../../autoscaler/kubernetes-scaler.ts";
import { eventually } from "../helpers/eventually.ts";
import { turn } from "../helpers/fake-clock.ts";
import { SilentLog } from "../helpers/silent-log.ts";
import { ApiServer, pem, status } from "./api-server.ts";
import { describeScaler, soon } from "./scaler-cases.ts";

const scalePath = "/apis/apps/v1/namespaces/models/deployments/pool/scale";
const log = new SilentLog();

function open(
  { access }: ApiServer,
  changes: Partial<KubernetesScalerOptions> = {},
): Promise<KubernetesScaler> {
  const target = { kind: "deployments", name: "pool" } as const;
  return KubernetesScaler.open({ access, target, log, ...changes });
}

describeScaler("KubernetesScaler", async () => {
  const api = await ApiServer.start();
  return {
    scaler: await open(api),
    running: () => api.replicas,
    release: () => api.close(),
  };
});

describe("KubernetesScaler", () => {
  let api: ApiServer;
  let scaler: KubernetesScaler | undefined;

  beforeEach(async () => {
    api = await ApiServer.start();
  });

  afterEach(async () => {
    await scaler?.close(soon());
    scaler = undefined;
    await api.close();
  });

  it("begins with the replicas that are there, in its own namespace", async () => {
    api.replicas = 4;
    scaler = await open(api);
    expect(scaler.size()).toBe(4);
    expect(api.asked).toEqual([`GET ${scalePath}`]);
  });

  it("scales a StatefulSet of another namespace", async () => {
    const other = await ApiServer.start("/apis/apps/v1/namespaces/gpu/statefulsets/pool/scale");
    const target = { kind: "statefulsets", name: "pool", namespace: "gpu" } as const;
    const set = await open(other, { target });
    await set.scaleTo(2);
    expect(other.replicas).toBe(2);
    await set.close(soon());
    await other.close();
  });

  it("uses a token that has rotated", async () => {
    scaler = await open(api);
    api.token = "second-token";
    api.mount("token", "second-token\n");
    await scaler.scaleTo(1);
    expect(api.replicas).toBe(1);
  });

  it("notices when somebody else scales", async () => {
    scaler = await open(api, { refreshMilliseconds: 10 });
    api.replicas = 6;
    await eventually(() => expect(scaler?.size()).toBe(6));
  });

  it("keeps the size that it knows while the API server fails, and says so once", async () => {
    api.replicas = 2;
    const own = new SilentLog();
    scaler = await open(api, { refreshMilliseconds: 5, log: own });
    for (let i = 0; i < 5; i++)
      api.oddAnswers.push((response) => status(response, 503, "apiserver is shutting down"));
    await eventually(() => expect(api.oddAnswers).toEqual([]));
    expect(scaler.size()).toBe(2);
    expect(own.warnings).toEqual(["deployments 'models/pool': reading its scale fails"]);
  });

  it("tries again after a conflict", async () => {
    scaler = await open(api);
    for (let i = 0; i < 2; i++)
      api.oddAnswers.push((response) => status(response, 409, "the object has been modified"));
    await scaler.scaleTo(3);
    expect(api.replicas).toBe(3);
    expect(api.asked.slice(1)).toEqual(Array(3).fill(`PATCH ${scalePath}`));
  });

  it("asks one thing after the other, also when one fails", async () => {
    scaler = await open(api);
    const held = Promise.withResolvers<ServerResponse>();
    api.oddAnswers.push(held.resolve);
    const first = scaler.scaleTo(4).catch((error: unknown) => error);
    const second = scaler.scaleTo(2);
    const response = await held.promise;
    await turn();
    expect(api.asked).toHaveLength(2);
    status(response, 500, "etcd is away");
    expect(await first).toMatchObject({ code: "UNAVAILABLE" });
    await second;
    expect(scaler.size()).toBe(2);
  });

  it("gives up after three conflicts, and scales at the next call", async () => {
    scaler = await open(api);
    for (let i = 0; i < 3; i++)
      api.oddAnswers.push((response) => status(response, 409, "the object has been modified"));
    await expect(scaler.scaleTo(3)).rejects.toThrow(
      "deployments 'models/pool': the Kubernetes API answered patch with 409: the object has been modified",
    );
    expect(scaler.size()).toBe(0);
    await scaler.scaleTo(3);
    expect(scaler.size()).toBe(3);
  });

  it("says which rights are missing", async () => {
    api.oddAnswers.push((response) =>
      status(response, 403, 'User "system:serviceaccount:models:default" cannot get resource'),
    );
    await expect(open(api)).rejects.toThrow(
      "deployments 'models/pool': the Kubernetes API answered get with 403: " +
        'User "system:serviceaccount:models:default" cannot get resource; ' +
        "expected a role with get and patch on deployments/scale",
    );
  });

  it("says what is not there", async () => {
    const target = { kind: "deployments", name: "pond" } as const;
    await expect(open(api, { target })).rejects.toThrow(
      "deployments 'models/pond': the Kubernetes API answered get with 404: deployments.apps \"pool\" not found",
    );
  });

  it("does not wait longer than it is told", async () => {
    scaler = await open(api, { timeoutMilliseconds: 1000 });
    api.oddAnswers.push(() => {});
    await expect(scaler.scaleTo(1)).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "deployments 'models/pool': no answer from the Kubernetes API within 1000 ms",
    });
    api.oddAnswers.push((response) => response.writeHead(200).write("{"));
    await expect(scaler.scaleTo(1)).rejects.toThrow("within 1000 ms");
  });

  it("believes no answer that is no scale", async () => {
    const { replicas } = api;
    const answers = ["<html>", "{}", "null", '{"kind":"Scale","spec":{"replicas":"2"}}'];
    for (const answer of answers) {
      api.oddAnswers.push((response) => response.end(answer));
      // oxlint-disable-next-line no-await-in-loop -- each answer is for one request
      await expect(open(api)).rejects.toThrow("answered get with 200");
    }
    api.oddAnswers.push((response) => response.end(Buffer.alloc(1024 * 1024 + 1, " ")));
    await expect(open(api)).rejects.toThrow("the answer is larger than 1048576 bytes");
    expect(api.replicas).toBe(replicas);
  });

  it("trusts nobody whom the cluster's authority has not signed", async () => {
    api.mount("ca.crt", pem("client"));
    await expect(open(api)).rejects.toThrow("unable to verify");
    expect(api.asked).toEqual([]);
  });

  it("refuses names that would lead elsewhere", async () => {
    for (const name of ["../secrets", "a/b", "A", "", "a?b", "pool\n"]) {
      const target = { kind: "deployments", name } as const;
      // oxlint-disable-next-line no-await-in-loop -- one name after the other
      await expect(open(api, { target })).rejects.toMatchObject({ code: "INVALID_ARG" });
    }
    expect(api.asked).toEqual([]);
  });

  it("does not wait for an answer any more when it must close", async () => {
    scaler = await open(api);
    api.oddAnswers.push(() => {});
    const scaled = scaler.scaleTo(1).catch((error: unknown) => error);
    await scaler.close(AbortSignal.abort());
    expect(await scaled).toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("podAccess", () => {
  it("finds the API server as Kubernetes tells it to every pod", () => {
    const env = { KUBERNETES_SERVICE_HOST: "10.0.0.1", KUBERNETES_SERVICE_PORT: "443" };
    expect(podAccess(env)).toEqual({
      host: "10.0.0.1",
      port: 443,
      accountFolder: "/var/run/secrets/kubernetes.io/serviceaccount",
    });
  });

  it("says so outside of a pod", () => {
    expect(() => podAccess({})).toThrow("KUBERNETES_SERVICE_HOST is not set");
  });
});
