import { isIP } from "node:net";
import { invalidArgument } from "../../protocol/error.ts";
import { type AllowedTarget, isAllowed } from "./allowed-target.ts";
import { isPublicAddress } from "./public-address.ts";

/** Where webhooks may go. */
export interface TargetPolicy {
  /** Without TLS, too. */
  readonly allowHttp: boolean;
  /** Empty for those of the protocols: 443, and 80 where http is allowed. */
  readonly ports: readonly number[];
  /** Beside what is public. */
  readonly allowed: readonly AllowedTarget[];
}

const mostCharacters = 2048;

/**
 * The URL of a target, if webhooks may go there as far as the text tells; throws INVALID_ARG otherwise. What a name stands for
 * is asked with {@link mayConnect} for the very address that is connected to.
 */
export function readTarget(policy: TargetPolicy, text: string): URL {
  if (text.length > mostCharacters) {
    throw refused(`given ${text.length} characters, expected ${mostCharacters} at most`);
  }
  // A header that is given twice has a blank between the two.
  const url = URL.canParse(text) && !/\s/u.test(text) ? new URL(text) : undefined;
  if (!url || !protocols(policy).includes(url.protocol)) {
    throw refused(`expected a URL of ${policy.allowHttp ? "https or http" : "https"}`);
  }
  if (url.username !== "" || url.password !== "") throw refused("expected no name or password");
  checkPort(policy, url);
  const address = url.hostname.replaceAll(/^\[|\]$/gu, "");
  if (isIP(address) > 0 && !mayConnect(policy, url.hostname, address)) {
    throw refused("given an address that webhooks may not go to");
  }
  return url;
}

/** True for an address that may be connected to. @param host the name, or the address again, as it stands in the URL */
export function mayConnect({ allowed }: TargetPolicy, host: string, address: string): boolean {
  if (isIP(address) === 0) return false;
  const name = host.toLowerCase().replace(/\.$/u, "");
  return isPublicAddress(address) || allowed.some((target) => isAllowed(target, name, address));
}

function protocols({ allowHttp }: TargetPolicy): readonly string[] {
  return allowHttp ? ["https:", "http:"] : ["https:"];
}

function checkPort({ ports, allowHttp }: TargetPolicy, { port, protocol }: URL): void {
  const defaults = allowHttp ? [443, 80] : [443];
  const expected = ports.length > 0 ? ports : defaults;
  const given = Number(port === "" ? defaultPorts[protocol] : port);
  if (!expected.includes(given)) {
    throw refused(`given port ${given}, expected ${expected.join(" or ")}`);
  }
}

const defaultPorts: Readonly<Record<string, number>> = { "https:": 443, "http:": 80 };

function refused(text: string): Error {
  return invalidArgument(`Webhook-URL: ${text}`);
}
