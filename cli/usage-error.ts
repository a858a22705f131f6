/** A mistake in how the program was started; its message goes to the terminal as it is, without a stack. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
