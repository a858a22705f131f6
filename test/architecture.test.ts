import { readFileSync, globSync } from "node:fs";
import { builtinModules } from "node:module";
import path from "node:path";
import { describe, expect, it } from "vitest";

const root = path.resolve(import.meta.dirname, "..");

/** Which other folders a folder may import. */
const layers: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  telemetry: ["protocol"],
  redis: ["protocol"],
  repository: ["protocol", "telemetry"],
  cache: ["protocol", "telemetry", "redis"],
  auth: ["protocol", "telemetry", "redis"],
  serving: ["protocol", "telemetry", "repository", "cache"],
  queue: ["protocol", "telemetry", "redis", "repository", "serving"],
  gateway: ["protocol", "telemetry", "repository", "auth"],
  pool: ["protocol", "telemetry", "repository", "serving"],
  autoscaler: ["protocol", "telemetry", "redis", "repository", "queue"],
  functions: ["protocol"],
  cli: [
    "protocol",
    "telemetry",
    "redis",
    "repository",
    "cache",
    "auth",
    "serving",
    "queue",
    "gateway",
    "pool",
    "autoscaler",
  ],
};

/** The only places that may import a vendor's package. */
const vendors: Readonly<Record<string, readonly string[]>> = {
  pino: ["telemetry/"],
  "prom-client": ["telemetry/"],
  "pino-pretty": ["telemetry/"],
  hono: ["gateway/http/", "functions/model-uploaded/"],
  "@hono/node-server": ["gateway/http/", "functions/model-uploaded/"],
  "@grpc/grpc-js": ["gateway/grpc/", "autoscaler/"],
  "@opentelemetry/api": ["telemetry/"],
  "@opentelemetry/exporter-trace-otlp-http": ["telemetry/"],
  "@opentelemetry/resources": ["telemetry/"],
  "@opentelemetry/sdk-trace": ["telemetry/"],
  "onnxruntime-node": ["pool/"],
  "@aws-sdk/client-s3": ["repository/"],
  "@aws-sdk/s3-request-presigner": ["repository/"],
  yaml: ["cli/"],
  ioredis: ["redis/"],
  jose: ["auth/", "functions/edge/"],
  "rate-limiter-flexible": ["auth/"],
  "lru-cache": ["cache/"],
  bullmq: ["queue/"],
  standardwebhooks: ["gateway/webhooks/"],
  "ipaddr.js": ["gateway/webhooks/"],
};

/** Packages that run anywhere, as the protocol does, and may be used anywhere. */
const pure: ReadonlySet<string> = new Set(["protobufjs"]);

interface Import {
  readonly file: string;
  readonly specifier: string;
}

const pattern =
  /(?:\b(?:import|export)\b[^;"'`]*?\bfrom|\bimport)\s*\(?\s*["'](?<specifier>[^"']+)["']|new URL\(\s*["'](?<url>\.[^"']+)["']/gu;

function importsOf(file: string): Import[] {
  const source = readFileSync(path.join(root, file), "utf8");
  return [...source.matchAll(pattern)].map(({ groups }) => ({
    file,
    specifier: groups?.["specifier"] ?? groups?.["url"] ?? "",
  }));
}

const files = Object.keys(layers).flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: root }));
const imports = files.flatMap((file) => importsOf(file));
const inside = imports.filter(({ specifier }) => specifier.startsWith("."));
const outside = imports.filter(({ specifier }) => !specifier.startsWith("."));

function targetOf({ file, specifier }: Import): string {
  return path.join(path.dirname(file), specifier);
}

function folderOf(file: string): string {
  return file.split("/")[0] ?? "";
}

function packageOf(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

describe("architecture", () => {
  it("sees the imports that it judges", () => {
    expect(files.length).toBeGreaterThan(50);
    expect(inside).toContainEqual({
      file: "gateway/data-plane.ts",
      specifier: "../protocol/call.ts",
    });
    expect(inside).toContainEqual({ file: "cli/main.ts", specifier: "./serve.ts" });
    expect(outside).toContainEqual({ file: "telemetry/logger.ts", specifier: "pino" });
    expect(outside.some(({ specifier }) => specifier === "node:http")).toBe(true);
  });

  it("imports only what stands above a folder", () => {
    const wrong = inside.filter((one) => {
      const from = folderOf(one.file);
      const to = folderOf(targetOf(one));
      // What is no folder of ours is data: package.json, an example.
      return to !== from && to in layers && !(layers[from] ?? []).includes(to);
    });
    expect(wrong).toEqual([]);
  });

  it("keeps the protocol free of node and of all that runs only there", () => {
    const wrong = outside.filter(
      ({ file, specifier }) => folderOf(file) === "protocol" && !pure.has(packageOf(specifier)),
    );
    expect(wrong).toEqual([]);
  });

  it("names node's own modules with their prefix", () => {
    const bare = outside.filter(({ specifier }) => builtinModules.includes(specifier));
    expect(bare).toEqual([]);
  });

  it("keeps one vendor in one folder", () => {
    const wrong = outside.filter(({ file, specifier }) => {
      const name = packageOf(specifier);
      if (name.startsWith("node:") || pure.has(name)) return false;
      const allowed = vendors[name] ?? [];
      return !allowed.some((folder) => file.startsWith(folder));
    });
    expect(wrong).toEqual([]);
  });
});
