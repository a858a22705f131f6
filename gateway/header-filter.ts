/** Which headers become parameters of the request, by their names. */
export type HeaderFilter = Pick<RegExp, "test">;

/** What proves who calls is for nobody else: no model sees it, no request carries it into a queue. */
export function withoutCredentials(filter: HeaderFilter): HeaderFilter {
  return { test: (name) => !secret.test(name) && filter.test(name) };
}

const secret = /^(?:authorization|tidepool-edge|x-api-key)$/iu;
