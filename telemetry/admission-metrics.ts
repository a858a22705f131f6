import { type MetricFamily, single } from "./metric-family.ts";

/** How many requests are under way at a server, and which were refused. */
export interface AdmissionObservation {
  readonly requests: number;
  readonly bytes: number;
  readonly refusals: Iterable<{
    readonly reason: string;
    readonly tenant: string;
    readonly count: number;
  }>;
}

/** What one server has let in, and what it has refused for want of room or by a limit. */
export function admissionMetrics(observed: AdmissionObservation): readonly MetricFamily[] {
  const { requests, bytes, refusals } = observed;
  return [
    single("gauge", "tidepool_requests_in_flight", "Requests for work under way", requests),
    single("gauge", "tidepool_request_bytes_in_flight", "Bytes of their bodies", bytes),
    {
      name: "tidepool_requests_refused_total",
      help: "Requests refused by a limit or for want of room",
      type: "counter",
      samples: Array.from(refusals, ({ reason, tenant, count }) => ({
        labels: { reason, tenant },
        value: count,
      })),
    },
  ];
}
