import { Metadata, status } from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "vitest";
import {
  apiCategories,
  type ApiCategory,
  grpcCategories,
  httpCategories,
} from "../../gateway/api-category.ts";
import type { Restrictions } from "../../gateway/restrictions.ts";
import { errorOf } from "../helpers/http-client.ts";
import { collect } from "../helpers/grpc-client.ts";
import { GrpcStand } from "./grpc/grpc-stand.ts";
import { HttpStand } from "./http/http-stand.ts";

let stand: HttpStand | GrpcStand | undefined;

afterEach(async () => {
  await stand?.stop();
  stand = undefined;
});

function restrict(categories: readonly ApiCategory[]): Restrictions {
  return new Map(categories.map((category) => [category, { key: "X-Key", value: "secret" }]));
}

async function httpStand(...categories: readonly ApiCategory[]): Promise<HttpStand> {
  const started = await HttpStand.start({ restrictions: restrict(categories) });
  stand = started;
  return started;
}

async function grpcStand(...categories: readonly ApiCategory[]): Promise<GrpcStand> {
  const started = await GrpcStand.start({ restrictions: restrict(categories) });
  stand = started;
  return started;
}

/** Paths as clients write them, with and without a version. */
const httpPaths = Object.entries(httpCategories).flatMap(([pattern, category]) => {
  const path = pattern.replace(":model", "batch").replace(":repository", "r");
  const versioned = path.replace("/models/batch", "/models/batch/versions/1");
  const ofModel = pattern.startsWith("/v2/models/:model") && !/\/(?:cache|trace)\//u.test(pattern);
  return (ofModel ? [path, versioned] : [path]).map((one) => [one, category] as const);
});

function key(value: string): Metadata {
  const metadata = new Metadata();
  metadata.set("triton-grpc-protocol-x-key", value);
  return metadata;
}

/** The status that a call of a method with an empty message ends with. */
async function statusOf(
  to: GrpcStand,
  method: string,
  metadata = new Metadata(),
): Promise<unknown> {
  try {
    if (method === "ModelStreamInfer") {
      const stream = to.stream(metadata);
      stream.end();
      await collect(stream);
    } else {
      const path = method === "Check" ? "grpc.health.v1.Health/Check" : method;
      await to.ask(path, {}, { metadata, deadline: 5000 });
    }
    return status.OK;
  } catch (error) {
    if (error instanceof Error && "code" in error) return error.code;
    throw error;
  }
}

describe("restrictions over HTTP", () => {
  it("refuse every path of the table without the header, whatever the method", async () => {
    const { get, post } = bound(await httpStand(...apiCategories));
    for (const [path] of httpPaths) {
      for (const answer of [await get(path), await post(path)]) {
        expect([path, answer.status]).toEqual([path, 403]);
        expect(errorOf(answer)).toBe("This API is restricted, expecting header 'X-Key'");
      }
    }
  });

  it.each(apiCategories)("leave %s open when all others are restricted", async (open) => {
    const { get } = bound(await httpStand(...apiCategories.filter((name) => name !== open)));
    for (const [path, category] of httpPaths) {
      const answer = await get(path);
      expect([path, answer.status === 403]).toEqual([path, category !== open]);
    }
  });

  it("let a call pass with the header in any spelling and the value in one only", async () => {
    const http = await httpStand("inference");
    const body = { inputs: [{ name: "IN0", datatype: "FP32", shape: [1, 4], data: [1, 2, 3, 4] }] };
    expect((await http.infer("batch", body, { "x-KEY": "secret" })).status).toBe(200);
    for (const wrong of ["", "Secret", "secret "]) {
      const expected = wrong === "secret " ? 200 : 403; // HTTP itself trims a header's value
      expect((await http.infer("batch", body, { "X-Key": wrong })).status).toBe(expected);
    }
    expect((await http.infer("batch", body)).status).toBe(403);
  });
});

describe("restrictions over gRPC", () => {
  const methods = Object.keys(grpcCategories).filter((name) => name !== "Watch");

  it("refuse every method of the table without the metadata", async () => {
    const grpc = await grpcStand(...apiCategories);
    for (const method of methods) {
      expect([method, await statusOf(grpc, method)]).toEqual([method, status.UNAVAILABLE]);
      expect(await statusOf(grpc, method, key("wrong"))).toBe(status.UNAVAILABLE);
      expect(await statusOf(grpc, method, key("secret"))).not.toBe(status.UNAVAILABLE);
    }
    await expect(grpc.ask("ServerLive", {})).rejects.toMatchObject({
      details: "This protocol is restricted, expecting header 'triton-grpc-protocol-X-Key'",
    });
  });

  it.each(apiCategories)("leave %s open when all others are restricted", async (open) => {
    const grpc = await grpcStand(...apiCategories.filter((name) => name !== open));
    for (const [method, category] of Object.entries(grpcCategories)) {
      if (method === "Watch") continue;
      const refused = (await statusOf(grpc, method)) === status.UNAVAILABLE;
      expect([method, refused]).toEqual([method, category !== open]);
    }
  });
});

function bound(http: HttpStand): Pick<HttpStand, "get" | "post"> {
  return { get: (path) => http.get(path), post: (path) => http.post(path) };
}
