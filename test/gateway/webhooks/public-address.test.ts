import { describe, expect, it } from "vitest";
import { isPublicAddress } from "../../../gateway/webhooks/public-address.ts";

describe("isPublicAddress", () => {
  it.each(["1.1.1.1", "8.8.8.8", "172.32.0.1", "2606:4700:4700::1111", "2a00:1450:4001::1"])(
    "takes %s",
    (address) => {
      expect(isPublicAddress(address)).toBe(true);
    },
  );

  it.each([
    ["this machine", ["127.0.0.1", "127.255.255.254", "::1"]],
    ["nobody", ["0.0.0.0", "0.1.2.3", "::", ""]],
    ["private networks", ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fd00::1"]],
    ["links", ["169.254.1.1", "fe80::1", "fe80::1%eth0"]],
    ["carriers' networks", ["100.64.0.1", "100.127.255.255"]],
    ["groups", ["224.0.0.1", "239.1.2.3", "255.255.255.255", "ff02::1"]],
    ["mapped IPv4", ["::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "::ffff:0:8.8.8.8"]],
    ["NAT64", ["64:ff9b::8.8.8.8", "64:ff9b:1::1"]],
    ["6to4 and Teredo", ["2002:808:808::1", "2001:0:1::1"]],
    ["documents and tests", ["192.0.2.1", "198.18.0.1", "203.0.113.1", "2001:db8::1", "3fff::1"]],
    ["what is not assigned", ["240.0.0.1", "4000::1", "fec0::1", "100::1", "5f00::1"]],
    [
      "services of clouds",
      ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16"],
    ],
    ["what is no address", ["localhost", "example.com", "1.2.3.4.5", "[::1]"]],
  ])("refuses %s", (_, addresses) => {
    expect(addresses.filter(isPublicAddress)).toEqual([]);
  });
});
