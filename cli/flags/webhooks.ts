import { parseAllowedTarget } from "../../gateway/webhooks/allowed-target.ts";
import { flag, optional, repeated } from "../flag.ts";
import { boolean, integer, path, positiveNumber } from "../flag-type.ts";

/** Who is told of the end of a job, and where they may be. */
export const webhookFlags = {
  "webhook-secret-file": optional(
    path,
    "JSON file with the secrets that sign webhooks, lists by tenant; read again when it changes. No webhooks without it.",
  ),
  "webhook-allow-target": repeated(
    { name: "address, network or name with * for any text", parse: parseAllowedTarget },
    "Where webhooks may go beside public addresses: as 10.1.0.0/16 or *.hooks.example; a name is believed whatever it stands for.",
  ),
  "webhook-allow-http": flag(boolean, false, "Let webhooks go where there is no TLS, too."),
  "webhook-port": repeated(
    integer(1, 65_535),
    "Port that webhooks may go to; without any 443, and 80 with --webhook-allow-http.",
  ),
  "webhook-attempts": flag(integer(1, 20), 8, "How often a webhook is tried."),
  "webhook-retry-secs": flag(
    positiveNumber,
    5,
    "Seconds from the first attempt to the second, more or less; each later wait is five times the one before, a day at most.",
  ),
  "webhook-max-undelivered": flag(
    integer(1),
    100_000,
    "Webhooks of one tenant in one pool, or in serve, that may wait for another attempt; no job of the tenant may want one then.",
  ),
  "webhook-timeout-secs": flag(integer(1, 300), 15, "Seconds that one attempt may take."),
};
