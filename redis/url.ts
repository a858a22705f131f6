import { invalidArgument } from "../protocol/error.ts";

/** One server of a Redis. */
export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

/** Where a Redis is and how to get in, as a URL says it. */
export interface RedisAddress {
  readonly cluster: boolean;
  readonly tls: boolean;
  /** The server, or those of a Cluster that are asked for the others. */
  readonly nodes: readonly RedisNode[];
  readonly username?: string;
  readonly password?: string;
  readonly database: number;
}

/** Reads the address of a Redis from its URL; a refusal never shows the password. */
export function parseRedisUrl(url: string): RedisAddress {
  const { groups: parts = {} } = pattern.exec(url) ?? {};
  const cluster = parts["cluster"] !== undefined;
  const nodes = (parts["places"] ?? "").split(",").map((place) => readNode(place));
  const database = Number(parts["database"] ?? 0);
  const fits = cluster ? nodes.length <= mostNodes && database === 0 : nodes.length === 1;
  if (!fits || !nodes.every((node) => node !== undefined)) {
    throw invalidArgument(
      `Redis URL '${withoutSecrets(url)}' cannot be used, expected ${expected}`,
    );
  }
  const tls = parts["tls"] !== undefined;
  return { cluster, tls, nodes, ...readCredentials(parts["credentials"]), database };
}

const expected =
  "redis://[[user]:password@]host[:port][/database] or " +
  "redis-cluster://[[user]:password@]host[:port][,host[:port]…], both also as rediss with TLS";

/** Credentials end at the last `@`, so that one in a password is never taken for a part of the host. */
const pattern =
  /^redis(?<tls>s)?(?<cluster>-cluster)?:\/\/(?:(?<credentials>.*)@)?(?<places>[^/@]+)(?:\/(?<database>\d{0,5}))?$/su;
const nodePattern = /^(?:\[(?<ipv6>[\da-f:.]+)\]|(?<name>[\w.-]+))(?::(?<port>\d+))?$/iu;
const defaultPort = 6379;
/** A Cluster tells of its other nodes itself: a longer list is a mistake. */
const mostNodes = 100;

function readNode(place: string): RedisNode | undefined {
  const parts = nodePattern.exec(place)?.groups;
  const host = parts?.["ipv6"] ?? parts?.["name"];
  const port = Number(parts?.["port"] ?? defaultPort);
  return host !== undefined && port > 0 && port < 65_536 ? { host, port } : undefined;
}

/** What a shell, a config file or a person may have encoded; what cannot be decoded is meant as it stands. */
function readCredentials(text = ""): Pick<RedisAddress, "username" | "password"> {
  const colon = text.indexOf(":");
  const [username, password] =
    colon < 0 ? [text, ""] : [text.slice(0, colon), text.slice(colon + 1)];
  return {
    ...(username !== "" && { username: decoded(username) }),
    ...(password !== "" && { password: decoded(password) }),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The scheme and what follows the last `@`; behind a colon only a port, because a forgotten host leaves a password there. */
function withoutSecrets(url: string): string {
  const [scheme = ""] = /^[a-z-]*:\/\//u.exec(url) ?? [];
  const [, hidden, place = ""] = /^(.*@)?(.*)$/su.exec(url.slice(scheme.length)) ?? [];
  return `${scheme}${hidden ? "…@" : ""}${place.replace(/\?.*|(?<=.):(?!\d+(?:[,/]|$)).*|^:.*/su, "…")}`;
}
