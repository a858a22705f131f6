import { StatusCode } from "../../protocol/error.ts";
import { isJsonObject } from "../../protocol/json-access.ts";
import type { InstanceSettings } from "../backend/backend.ts";
import { isGraphFinding, type GraphFinding } from "./graph-finding.ts";

/** What the process that opens an unknown model is to do. */
export interface ProbeOrder {
  readonly settings: InstanceSettings;
  /** An empty folder for the optimised graph, where one is wanted: it is part of success then. */
  readonly saveTo?: string;
}

/** The one message with which it answers. */
export type ProbeReport =
  | { readonly opened: true; readonly finding: GraphFinding }
  | { readonly opened: false; readonly code: StatusCode; readonly message: string };

const maxMessage = 10_000;
const codes: ReadonlySet<unknown> = new Set(Object.values(StatusCode));

/** Checks a report: a crafted model may have taken over the process that sends it. */
export function isProbeReport(value: unknown): value is ProbeReport {
  if (!isJsonObject(value)) return false;
  const { opened, finding, code, message } = value;
  if (opened === true) return isGraphFinding(finding);
  return (
    opened === false &&
    codes.has(code) &&
    typeof message === "string" &&
    message.length <= maxMessage
  );
}
