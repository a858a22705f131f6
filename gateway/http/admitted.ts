import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { QuotaState } from "../../protocol/error.ts";
import type { Exchange, ExchangeAnswer } from "./exchange.ts";
import type { HttpOptions } from "./options.ts";

/** Lets a function answer calls for work for which there is room, and refuses the others before their bodies are read. */
export function admitted(
  { admission, maxInputBytes }: Pick<HttpOptions, "admission" | "maxInputBytes">,
  answer: ExchangeAnswer,
): ExchangeAnswer {
  if (!admission) return answer;
  return async (exchange: Exchange) => {
    const { caller, call, incoming, outgoing, modelName: model } = exchange;
    const bytes = Math.min(maxInputBytes, announcedBytes(incoming.headers));
    const entered = admission.enter({ caller, call, model, bytes });
    const permit = entered instanceof Promise ? await entered : entered;
    permit.onQuota((quota) => setQuota(outgoing, quota));
    try {
      await answer(exchange);
    } finally {
      permit.release();
    }
  };
}

function setQuota(outgoing: ServerResponse, { policy, left }: QuotaState): void {
  if (outgoing.headersSent) return;
  outgoing.setHeader("RateLimit-Policy", policy);
  outgoing.setHeader("RateLimit", left);
}

/** A body that does not say how long it is may be as long as any. */
function announcedBytes(headers: IncomingHttpHeaders): number {
  return headers["content-length"] === undefined ? Infinity : Number(headers["content-length"]);
}
