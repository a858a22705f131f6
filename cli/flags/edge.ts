import { flag, optional } from "../flag.ts";
import { type FlagType, text } from "../flag-type.ts";

/** Ids become parts of addresses. */
const id: FlagType<string> = {
  name: "letters and digits",
  parse: (given) => (/^\w{1,64}$/u.test(given) ? given : undefined),
};

/** Where `tidepool keys` tells the edge Worker of keys. */
export const edgeKeyFlags = {
  "kv-account-id": optional(
    id,
    "Cloudflare account of the edge Worker. With a namespace, keys are written there, too; the token is CLOUDFLARE_API_TOKEN.",
  ),
  "kv-namespace-id": optional(id, "KV namespace that the edge Worker reads keys from."),
  "kv-endpoint": flag(text, "https://api.cloudflare.com/client/v4", "Address of Cloudflare's API."),
};
