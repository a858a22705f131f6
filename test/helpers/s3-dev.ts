import { HttpClient } from "./http-client.ts";
import { s3Environment, startS3, type S3Server } from "./s3-server.ts";
import { startTidepool, type TidepoolProcess } from "./tidepool-process.ts";

/** `tidepool dev` over models in a real S3 server. */
export interface S3Dev {
  readonly server: TidepoolProcess;
  readonly http: HttpClient;
  /** Ends both servers. */
  stop(): Promise<void>;
}

/** Starts both, with the models that `put` brings; whoever starts them has to stop them. */
export async function startS3Dev(
  put: (s3: S3Server) => Promise<void>,
  ...flags: readonly string[]
): Promise<S3Dev> {
  Object.assign(process.env, s3Environment);
  const s3 = await startS3();
  await put(s3);
  const repository = `--model-repository=s3://${new URL(s3.endpoint).host}/${s3.bucket}`;
  const server = await startTidepool([repository, ...flags], "dev");
  const http = new HttpClient(server.http);
  return {
    server,
    http,
    async stop() {
      http.close();
      await server.stop();
      await s3.stop();
    },
  };
}
