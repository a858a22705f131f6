/**
 * Keeps a look at changing things from overtaking itself: asked while it runs, the task runs once more afterwards,
 * however often it was asked. The task must not reject.
 * @returns what asks for a run; resolves when one has begun after the asking and ended.
 */
export function oneAtATime(task: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  const run = (): Promise<void> => {
    next = undefined;
    running = task().finally(() => {
      if (!next) running = undefined;
    });
    return running;
  };
  return () => {
    if (!running) return run();
    next ??= running.then(run);
    return next;
  };
}
