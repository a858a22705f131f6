import { readFileSync } from "node:fs";
import { HttpClient } from "../helpers/http-client.ts";
import { startTidepool } from "../helpers/tidepool-process.ts";

/** A server that takes uploads, in one process. */
export interface RunningServe {
  readonly http: HttpClient;
  /** As in `127.0.0.1:8000`. */
  readonly address: string;
  readonly residentBytes: () => number;
  stop(): Promise<void>;
}

export async function startServe(
  models: string,
  flags: readonly string[] = [],
): Promise<RunningServe> {
  const server = await startTidepool([`--model-repository=${models}`, "--allow-uploads", ...flags]);
  const http = new HttpClient(server.http);
  return {
    http,
    address: server.http,
    residentBytes: () => {
      const status = readFileSync(`/proc/${server.process.pid}/status`, "utf8");
      return Number(/VmRSS:\s+(?<kilobytes>\d+)/u.exec(status)?.groups?.["kilobytes"]) * 1024;
    },
    async stop() {
      http.close();
      await server.stop();
    },
  };
}
