import { Metadata, type status } from "@grpc/grpc-js";
import { fieldSize, stringSize, varintSize, WireWriter } from "./wire-writer.ts";

/** What a failed call says beside its code and text. */
interface Refusal {
  readonly code: status;
  /** As it stands in the status: clients hold one against the other. */
  readonly details: string;
}

const typeUrl = "type.googleapis.com/google.rpc.RetryInfo";

/**
 * Trailing metadata that tell when to try again: as HTTP's `retry-after`, and as google.rpc.RetryInfo in the details of the
 * status, where libraries of gRPC look for it.
 */
export function retryMetadata(refusal: Refusal, seconds: number): Metadata {
  const metadata = new Metadata();
  metadata.set("retry-after", String(Math.ceil(seconds)));
  metadata.set("grpc-status-details-bin", statusDetails(refusal, seconds));
  return metadata;
}

/** A google.rpc.Status with a RetryInfo as its only detail. */
function statusDetails({ code, details }: Refusal, seconds: number): Buffer {
  const whole = Math.floor(seconds);
  const nanos = Math.round((seconds - whole) * 1e9);
  const duration = 1 + varintSize(whole) + 1 + varintSize(nanos);
  const retryInfo = fieldSize(duration);
  const detail = stringSize(typeUrl) + fieldSize(retryInfo);
  const writer = new WireWriter(1 + varintSize(code) + stringSize(details) + fieldSize(detail));
  writer.head(0x08, code);
  writer.string(0x12, details);
  writer.head(0x1a, detail);
  writer.string(0x0a, typeUrl);
  writer.head(0x12, retryInfo);
  writer.head(0x0a, duration);
  writer.head(0x08, whole);
  writer.head(0x10, nanos);
  return writer.bytes;
}
