/** How often a gateway looks for what was lost between two writes. */
const lookMilliseconds = 2000;

/**
 * Looks at all pools again and again, one round after the other, until the function that is given back is called. What
 * fails, because Redis is away, is looked at in the next round.
 */
export function lookAround<P>(pools: readonly P[], look: (pool: P) => Promise<void>): () => void {
  let isLooking = false;
  const round = async (): Promise<void> => {
    if (isLooking) return;
    isLooking = true;
    await Promise.allSettled(pools.map(look));
    isLooking = false;
  };
  const timer = setInterval(() => void round(), lookMilliseconds);
  return () => clearInterval(timer);
}
