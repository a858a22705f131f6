/** Types of frames, by RFC 9113, section 6. */
export const FrameType = {
  Data: 0,
  Headers: 1,
  Priority: 2,
  RstStream: 3,
  Settings: 4,
  PushPromise: 5,
  Ping: 6,
  GoAway: 7,
  WindowUpdate: 8,
  Continuation: 9,
} as const;

/** Flags of frames; what they mean depends on the type. */
export const Flag = {
  None: 0,
  EndStream: 1,
  Ack: 1,
  EndHeaders: 4,
  Padded: 8,
  Priority: 32,
} as const;

/** Names of settings, by RFC 9113, section 6.5.2. */
export const Setting = {
  HeaderTableSize: 1,
  EnablePush: 2,
  MaxConcurrentStreams: 3,
  InitialWindowSize: 4,
  MaxFrameSize: 5,
  MaxHeaderListSize: 6,
} as const;

/** Why a stream or a connection ends, by RFC 9113, section 7. */
export const ErrorCode = {
  NoError: 0,
  ProtocolError: 1,
  FlowControlError: 3,
  StreamClosed: 5,
  FrameSizeError: 6,
  RefusedStream: 7,
  Cancel: 8,
  CompressionError: 9,
  EnhanceYourCalm: 11,
} as const;

/** What both sides begin with, by RFC 9113, section 6.5.2 and 6.9.2. */
export const initial = { windowBytes: 65_535, frameBytes: 16_384, headerTableBytes: 4096 } as const;

export const largestWindowBytes = 2 ** 31 - 1;

export const frameHeadBytes = 9;

const prefaceText = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/** What a client says first, by RFC 9113, section 3.4. */
export const preface = Buffer.from(prefaceText);

/** Something after which nothing on a connection can be trusted any more. */
export class ConnectionError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}
