import { afterEach, describe, expect, it } from "vitest";
import { edgeSecret, type EdgeWorker, startEdge } from "../../helpers/edge-worker.ts";

let edge: EdgeWorker;
afterEach(() => edge.stop());

const tokens = { JWT_ISSUER: "a", JWT_AUDIENCE: "b" };

describe("the edge Worker, half set up", () => {
  it.each<[variables: Readonly<Record<string, unknown>>]>([
    [{ EDGE_SECRET: "" }],
    [{ EDGE_SECRET: "short" }],
    [{ ORIGINS: "" }],
    [{ ORIGINS: "https://gateway.example/path" }],
    [{ ORIGINS: "https://gateway.example,gateway.example" }],
    [{ JWT_JWKS: "{}" }],
    [{ ...tokens, JWT_JWKS_URL: "http://issuer.example/jwks" }],
  ])(
    "answers nobody with %j",
    async (variables) => {
      edge = await startEdge(variables);
      const answer = await fetch(`http://${edge.address}/v2/health/live`);
      expect(answer.status).toBe(500);
      const text = await answer.text();
      expect(text).toBe('{"error":"the edge is not set up; its log says what is missing"}');
      expect(text).not.toContain(edgeSecret);
    },
    30_000,
  );
});
