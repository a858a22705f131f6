/** Something of which there is only so much. */
export interface Claim {
  /** True when there is enough of it, false when there is not; a promise where that is worth asking again when it resolves. */
  ready(count: number): boolean | Promise<void>;
  /** Takes what is ready. */
  spend(count: number): void;
}

/** Others may be quicker each time, and what is bounded in a window may end with it. */
const mostTries = 8;

/**
 * Takes so many of each of several claims, or of none.
 *
 * @returns the one of which there was not enough, if so; at once unless another process must be asked
 */
export function takeAll<Kind extends Claim>(
  claims: readonly Kind[],
  count: number,
): Kind | undefined | Promise<Kind | undefined> {
  const tried = tryAll(claims, count);
  return tried instanceof Promise ? takeLater(claims, count, tried) : tried;
}

async function takeLater<Kind extends Claim>(
  claims: readonly Kind[],
  count: number,
  first: Promise<Kind>,
): Promise<Kind | undefined> {
  let lacking = await first;
  for (let tries = 1; tries < mostTries; tries++) {
    const tried = tryAll(claims, count);
    if (!(tried instanceof Promise)) return tried;
    lacking = await tried;
  }
  return lacking;
}

/** Gives what is lacking, with a promise where it may not lack when that resolves. */
function tryAll<Kind extends Claim>(
  claims: readonly Kind[],
  count: number,
): Kind | undefined | Promise<Kind> {
  let waiting: Promise<unknown> | undefined;
  let lacking: Kind | undefined;
  for (const claim of claims) {
    const ready = claim.ready(count);
    if (ready === true) continue;
    if (ready === false) return claim;
    waiting = waiting ? Promise.all([waiting, ready]) : ready;
    lacking = claim;
  }
  if (waiting && lacking) return waiting.then(() => lacking);
  for (const claim of claims) claim.spend(count);
  return undefined;
}
