import { z } from "zod";
import { StatusCode } from "../protocol/error.ts";
import { graphFinding, type GraphFinding } from "./graph-finding.ts";

/** The one message of the process that opens an unknown model. */
export type ProbeReport =
  | { readonly opened: true; readonly finding: GraphFinding }
  | { readonly opened: false; readonly code: StatusCode; readonly message: string };

const maxMessage = 10_000;

/** Checks a report: a crafted model may have taken over the process that sends it. */
export const probeReport: z.ZodType<ProbeReport> = z.discriminatedUnion("opened", [
  z.object({ opened: z.literal(true), finding: graphFinding }),
  z.object({
    opened: z.literal(false),
    code: z.enum(StatusCode),
    message: z.string().max(maxMessage),
  }),
]);
