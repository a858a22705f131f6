import type { IncomingHttpHeaders } from "node:http";
import type { Credentials } from "../auth/authenticator.ts";

/** What a request's headers show to be let in. Nothing else is looked at: addresses end up in logs. */
export function credentialsIn(headers: IncomingHttpHeaders): Credentials {
  const apiKey = headers["x-api-key"];
  return {
    authorization: headers.authorization,
    // Given twice it comes joined, which is no key.
    apiKey: typeof apiKey === "string" ? apiKey : apiKey?.join(", "),
  };
}
