const encoder = new TextEncoder();

/** An answer to an infer call, with where its JSON ends if tensors stand behind it. */
export interface InferAnswer {
  readonly body: Uint8Array;
  readonly headLength: number | undefined;
}

/**
 * An answer without the id of its request, which begins it where there is one: so it suits other requests, too.
 * Undefined where it does not begin so.
 */
export function withoutId(answer: InferAnswer, id: string): InferAnswer | undefined {
  const start = startWith(id);
  if (!start.every((byte, at) => answer.body[at] === byte)) return undefined;
  return spliced(answer, start.length, startWith(""));
}

/** The same with the id of another request. */
export function withId(answer: InferAnswer, id: string): InferAnswer {
  return spliced(answer, startWith("").length, startWith(id));
}

function startWith(id: string): Uint8Array {
  return encoder.encode(id === "" ? "{" : `{"id":${JSON.stringify(id)},`);
}

function spliced({ body, headLength }: InferAnswer, from: number, start: Uint8Array): InferAnswer {
  const rest = body.subarray(from);
  const whole = new Uint8Array(start.length + rest.length);
  whole.set(start);
  whole.set(rest, start.length);
  const more = start.length - from;
  return { body: whole, headLength: headLength === undefined ? undefined : headLength + more };
}
