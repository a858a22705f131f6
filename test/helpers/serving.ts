import { afterAll, beforeAll } from "vitest";
import { GrpcClient } from "./grpc-client.ts";
import { HttpClient } from "./http-client.ts";
import { ModelDirectory } from "./model-directory.ts";
import { type TidepoolCommand, type TidepoolProcess, startTidepool } from "./tidepool-process.ts";

/** A server that runs for all tests of a block, with its models and a client on each wire. */
export interface Serving {
  readonly models: ModelDirectory;
  readonly server: TidepoolProcess;
  readonly http: HttpClient;
  readonly grpc: GrpcClient;
}

/** Starts a server before the tests of the surrounding block; read what it gives inside of tests only. */
export function serving(write: (models: ModelDirectory) => void, ...flags: string[]): Serving {
  let started: Serving | undefined;
  const running = (): Serving => {
    if (!started) throw new Error("the server has not been started yet");
    return started;
  };
  beforeAll(async () => {
    const models = new ModelDirectory();
    write(models);
    started = await startServing(models, ...flags);
  });
  afterAll(() => stopServing(running()));
  return {
    get models() {
      return running().models;
    },
    get server() {
      return running().server;
    },
    get http() {
      return running().http;
    },
    get grpc() {
      return running().grpc;
    },
  };
}

/** The same for one test, which has to stop it. */
export function startServing(
  models: ModelDirectory,
  ...flags: readonly string[]
): Promise<Serving> {
  return startCommand("serve", models, ...flags);
}

/** The same with either command; whoever starts it has to stop it. */
export async function startCommand(
  command: TidepoolCommand,
  models: ModelDirectory,
  ...flags: readonly string[]
): Promise<Serving> {
  const server = await startTidepool([`--model-repository=${models.path}`, ...flags], command);
  return { models, server, http: new HttpClient(server.http), grpc: new GrpcClient(server.grpc) };
}

/** Ends a server and gives its exit code; its models go with it. */
export async function stopServing({
  models,
  server,
  http,
  grpc,
}: Serving): Promise<number | NodeJS.Signals> {
  http.close();
  grpc.close();
  const ended = await server.stop();
  models.remove();
  return ended;
}
