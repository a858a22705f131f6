import { describe, expect, it } from "vitest";
import { rawConnection } from "../../helpers/raw-connection.ts";
import { HttpStand } from "./http-stand.ts";

const never = new AbortController().signal;

describe("Connections", () => {
  it("ends connections that have asked nothing, soon after the server closes", async () => {
    const stand = await HttpStand.start();
    const silent = await rawConnection(stand.origin.slice(7));
    const half = await rawConnection(stand.origin.slice(7), "GET /v2 HTTP/1.1\r\nHo");
    await stand.get("/v2");
    const began = performance.now();
    await stand.server.close(never);
    await Promise.all([silent.ended, half.ended]);
    expect(performance.now() - began).toBeLessThan(5000);
    stand.close();
  });

  it("lets a client that has just connected ask once", async () => {
    const stand = await HttpStand.start();
    const newcomer = await rawConnection(stand.origin.slice(7));
    await stand.get("/v2/health/live");
    const closed = stand.server.close(never);
    newcomer.socket.write("GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(String(await newcomer.ended)).toMatch(/^HTTP\/1.1 200 OK\r\n/u);
    await closed;
    stand.close();
  });
});
