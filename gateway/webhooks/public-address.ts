import ipaddr from "ipaddr.js";

/**
 * True for an address that belongs to somebody on the internet. Private networks, this machine, links, groups, addresses
 * that carry another one inside (mapped, NAT64, 6to4, Teredo) and whatever is set aside for a purpose are not.
 */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.parse(text);
  if (address.range() !== "unicast" || metadataServices.has(address.toString())) return false;
  // What is not assigned yet counts as nobody's.
  return address.kind() === "ipv4" || address.match(assigned);
}

/** All others of their kind have addresses that are not public. */
const metadataServices: ReadonlySet<string> = new Set(["168.63.129.16"]);

const assigned = ipaddr.IPv6.parseCIDR("2000::/3");
