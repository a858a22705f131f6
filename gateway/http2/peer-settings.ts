import { ConnectionError, ErrorCode, initial, largestWindowBytes, Setting } from "./wire.ts";

/** Entries of one SETTINGS frame. */
const maxEntries = 32;

/** Of a setting in a frame. */
export const entryBytes = 6;

/** Larger frames save nothing. */
const largestFrameBytes = 1024 * 1024;

/** What the other side has said of itself, as far as it matters to one who sends. */
export interface PeerSettings {
  readonly windowBytes: number;
  /** Frames are no larger. */
  readonly frameBytes: number;
}

export const initialSettings: PeerSettings = initial;

/** The settings after a SETTINGS frame (RFC 9113, section 6.5). */
export function changedSettings(before: PeerSettings, payload: Buffer): PeerSettings {
  if (payload.length % entryBytes !== 0 || payload.length > maxEntries * entryBytes) {
    throw new ConnectionError(ErrorCode.FrameSizeError, `SETTINGS: given ${payload.length} bytes`);
  }
  let { windowBytes, frameBytes } = before;
  for (let at = 0; at < payload.length; at += entryBytes) {
    const value = payload.readUInt32BE(at + 2);
    switch (payload.readUInt16BE(at)) {
      case Setting.EnablePush:
        if (value > 1) throw wrong("ENABLE_PUSH", value, ErrorCode.ProtocolError);
        break;
      case Setting.InitialWindowSize:
        if (value > largestWindowBytes) {
          throw wrong("INITIAL_WINDOW_SIZE", value, ErrorCode.FlowControlError);
        }
        windowBytes = value;
        break;
      case Setting.MaxFrameSize:
        if (value < initial.frameBytes || value >= 2 ** 24) {
          throw wrong("MAX_FRAME_SIZE", value, ErrorCode.ProtocolError);
        }
        frameBytes = Math.min(value, largestFrameBytes);
        break;
    }
  }
  return { windowBytes, frameBytes };
}

function wrong(name: string, value: number, code: number): ConnectionError {
  return new ConnectionError(code, `SETTINGS: ${name}: given ${value}`);
}
