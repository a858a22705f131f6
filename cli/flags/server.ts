import { flag } from "../flag.ts";
import { boolean, integer, path, positiveNumber, text } from "../flag-type.ts";
import { defaultCacheDirectory } from "../cache-directory.ts";

/** The server as a whole. */
export const serverFlags = {
  id: flag(text, "tidepool", "Name of this server, as clients read it from /v2."),
  "exit-timeout-secs": flag(
    integer(0, 86_400),
    30,
    "Seconds to wait for requests in flight when the server ends; 0 does not wait.",
  ),
  "end-with-stdin": flag(
    boolean,
    false,
    "End when standard input does, as it does when the process that started this one is gone.",
  ),
  "allow-anonymous": flag(
    boolean,
    false,
    "Serve callers without keys on other addresses than loopback, too.",
  ),
  "local-cache-directory": flag(
    path,
    defaultCacheDirectory(process.env),
    "Folder that keeps what is known about model files, and their optimised graphs, between runs.",
  ),
  "probe-memory-limit-mb": flag(
    integer(64),
    4096,
    "Memory of the process that opens a model file for the first time, in MiB.",
  ),
  "probe-timeout-secs": flag(
    positiveNumber,
    120,
    "Seconds that opening a model file for the first time may take.",
  ),
};
