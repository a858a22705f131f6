/** The place of a caller in a distributed trace, as W3C's `traceparent` tells it. */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  /** The caller's own part is recorded. */
  readonly sampled: boolean;
}

const pattern =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})(?<traceId>[0-9a-f]{32})-(?!0{16})(?<spanId>[0-9a-f]{16})-(?<flags>[0-9a-f]{2})(?:$|-)/u;

/** Undefined for what is no `traceparent`: such a caller has no place in any trace. */
export function readTraceparent(text: string | undefined): TraceContext | undefined {
  const groups = pattern.exec(text ?? "")?.groups;
  if (!groups) return undefined;
  const { traceId = "", spanId = "", flags = "00" } = groups;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function writeTraceparent({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}
