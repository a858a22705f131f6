import { type InferenceError, StatusCode } from "../../protocol/error.ts";

/** The HTTP status of each outcome; a new outcome does not compile until it has one. */
export const httpStatus = {
  [StatusCode.Unknown]: 400,
  [StatusCode.Internal]: 500,
  [StatusCode.NotFound]: 404,
  [StatusCode.InvalidArg]: 400,
  [StatusCode.Unavailable]: 503,
  [StatusCode.Unsupported]: 501,
  [StatusCode.AlreadyExists]: 400,
  [StatusCode.Cancelled]: 400,
  [StatusCode.Unauthenticated]: 401,
  [StatusCode.PermissionDenied]: 403,
  [StatusCode.ResourceExhausted]: 429,
} as const satisfies Record<StatusCode, number>;

/** Texts repeat what a client sent; nobody reads more than this. */
const longestText = 4096;

/** The body of every answer that is an error. */
export function errorJson(message: string): string {
  const cut = message.length > longestText ? `${message.slice(0, longestText)}…` : message;
  return JSON.stringify({ error: cut });
}

/** What an error tells in headers: when to come again, what to show to be let in. */
export function errorHeaders({
  code,
  retryAfterSeconds: seconds,
  quota,
}: InferenceError): Readonly<Record<string, string>> {
  return {
    ...(seconds !== undefined && { "Retry-After": String(Math.ceil(seconds)) }),
    ...(quota && { "RateLimit-Policy": quota.policy, RateLimit: quota.left }),
    ...(code === StatusCode.Unauthenticated && { "WWW-Authenticate": 'Bearer realm="tidepool"' }),
  };
}
