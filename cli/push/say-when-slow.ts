const slowMilliseconds = 10_000;

/** Says something, once, when a task has not come to its end after a while. */
export async function sayWhenSlow<T>(
  task: Promise<T>,
  say: () => void,
  afterMilliseconds = slowMilliseconds,
): Promise<T> {
  const timer = setTimeout(say, afterMilliseconds);
  try {
    return await task;
  } finally {
    clearTimeout(timer);
  }
}
