/** Where a call comes from, as its calls are counted: of IPv6 the network, because each client has one to itself. */
export function addressOf({ headers }: Request): string {
  const address = headers.get("cf-connecting-ip") ?? "";
  if (!address.includes(":")) return address;
  const [before = [], behind = []] = address.split("::").map((part) => part.split(":"));
  const left = Array<string>(Math.max(0, 8 - before.length - behind.length)).fill("0");
  return [...before, ...left, ...behind].slice(0, 4).join(":");
}
