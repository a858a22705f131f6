import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { matchesPattern, type ModelPattern, modelPattern } from "../../protocol/model-pattern.ts";

/** Where webhooks may go although it is not public: addresses, or names whatever they stand for. */
export type AllowedTarget =
  | { readonly network: readonly [address: ipaddr.IPv4 | ipaddr.IPv6, bits: number] }
  | { readonly name: ModelPattern };

/** Reads `10.1.0.0/16`, `::1`, `hooks.example` or `*.hooks.example`; undefined for anything else. */
export function parseAllowedTarget(text: string): AllowedTarget | undefined {
  const [address = ""] = text.split("/");
  if (isIP(address) > 0) {
    const network = text === address ? networkOf(text) : text;
    return ipaddr.isValidCIDR(network) ? { network: ipaddr.parseCIDR(network) } : undefined;
  }
  if (text.length > 253 || !namePattern.test(text)) return undefined;
  return { name: modelPattern(text.toLowerCase()) };
}

/** @param name in lower case, without a dot at its end */
export function isAllowed(target: AllowedTarget, name: string, address: string): boolean {
  if ("name" in target) return matchesPattern(target.name, name);
  const [network, bits] = target.network;
  // An IPv4 address counts as such however it is written.
  const given = ipaddr.process(address);
  return given.kind() === network.kind() && given.match(network, bits);
}

const namePattern = /^(?=.*[a-z])[a-z0-9*_-]+(?:\.[a-z0-9*_-]+)*$/iu;

/** The network of one address. */
function networkOf(text: string): string {
  const address = ipaddr.process(text);
  return `${address.toString()}/${address.kind() === "ipv4" ? 32 : 128}`;
}
