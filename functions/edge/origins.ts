import { ShortMemory } from "./short-memory.ts";

const pauseSeconds = 5;

/** Origins that have failed a moment ago: there are as many as the settings name. */
const paused = new ShortMemory<true>(16);

/** The origins in the order in which a call asks them: those that failed a moment ago come last. */
export function inOrder(origins: readonly string[]): readonly string[] {
  const fit = origins.filter((origin) => !paused.recall(origin));
  return [...fit, ...origins.filter((origin) => !fit.includes(origin))];
}

/** An origin could not be reached, or only something in front of it: calls begin with another one for a while. */
export function pause(origin: string): void {
  paused.remember(origin, true, pauseSeconds);
}
