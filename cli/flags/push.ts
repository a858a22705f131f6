import { flag, optional } from "../flag.ts";
import { boolean, integer, text } from "../flag-type.ts";

/** What is pushed, and where to. */
export const pushFlags = {
  url: flag(text, "http://127.0.0.1:8000", "Server that takes the version, by HTTP."),
  key: optional(
    text,
    "API key or token with scope models; better in TIDEPOOL_KEY: all users of a machine see command lines.",
  ),
  headers: optional(
    text,
    "Headers that the server wants besides, as 'name: value; name: value'; better in TIDEPOOL_HEADERS.",
  ),
  model: optional(text, "Name of the model; default: that of the folder."),
  version: optional(integer(1), "Version to push as; default: the one after the highest there is."),
  restart: flag(
    boolean,
    false,
    "End an unfinished upload of other files that has the same version.",
  ),
};
