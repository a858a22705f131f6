import * as http2 from "node:http2";

/** How a call ended: its status, 0 for one that went well, and the text beside it. */
export interface FrameAnswer {
  readonly status: number;
  readonly text: string;
}

/** One gRPC message in its frame, with a flag and a length that need not be true. */
export function grpcFrame(
  message: Uint8Array,
  { flag = 0, length = message.length }: { flag?: number; length?: number } = {},
): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flag);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, message]);
}

/** Calls ModelInfer with any bytes at all, on a connection of its own. */
export async function callWithBytes(
  address: string,
  body: Buffer,
  headers: Readonly<Record<string, string>> = {},
): Promise<FrameAnswer> {
  const session = http2.connect(`http://${address}`);
  const { promise, resolve, reject } = Promise.withResolvers<FrameAnswer>();
  session.on("error", reject);
  const stream = session.request({
    ":method": "POST",
    ":path": "/inference.GRPCInferenceService/ModelInfer",
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  const end = (ending: http2.IncomingHttpHeaders): void => {
    const status = ending["grpc-status"];
    if (status === undefined) return;
    const text = decodeURIComponent(String(ending["grpc-message"] ?? ""));
    resolve({ status: Number(status), text });
  };
  stream.on("response", end);
  stream.on("trailers", end);
  stream.on("error", reject);
  stream.on("close", () => reject(new Error("the stream ended without a status")));
  stream.resume();
  stream.end(body);
  try {
    return await promise;
  } finally {
    session.destroy();
  }
}
