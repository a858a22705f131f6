/** What the tenant of a key or of a token looks like: it becomes part of names and of labels. */
export const tenantPattern = /^[\w.-]{1,64}$/u;
/** The same in words. */
export const tenantForm = "1 to 64 letters, digits, '_', '.' or '-'";
