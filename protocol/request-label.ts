/** `[request id: 42] `: how the reference's errors about one request begin. */
export function requestLabel(id: string): string {
  return `[request id: ${id || "<id_unknown>"}] `;
}
