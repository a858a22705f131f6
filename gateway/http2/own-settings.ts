import { maxFrameBytes } from "./frame-reader.ts";
import { maxHeaderBytes } from "./header-blocks.ts";
import { entryBytes } from "./peer-settings.ts";
import { streamWindowBytes } from "./stream.ts";
import { Setting } from "./wire.ts";

/** What a server says of itself first, as the payload of a SETTINGS frame. */
export function ownSettings(maxStreams: number): Buffer {
  const settings = [
    [Setting.MaxConcurrentStreams, maxStreams],
    [Setting.InitialWindowSize, streamWindowBytes],
    [Setting.MaxFrameSize, maxFrameBytes],
    [Setting.MaxHeaderListSize, maxHeaderBytes],
  ] as const;
  const payload = Buffer.alloc(entryBytes * settings.length);
  let at = 0;
  for (const [name, value] of settings) {
    at = payload.writeUInt16BE(name, at);
    at = payload.writeUInt32BE(value, at);
  }
  return payload;
}
