/** An answer that the edge gives itself, in the form of the gateways' errors. */
export function refusal(
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return Response.json({ error: message }, { status, headers });
}

/** For who shows nothing, or nothing that is good. */
export function unauthenticated(message: string): Response {
  return refusal(401, message, { "WWW-Authenticate": 'Bearer realm="tidepool"' });
}
