import { randomUUID } from "node:crypto";
import type { ServedModel } from "../../protocol/served-model.ts";

const ids = new WeakMap<ServedModel, string>();

/** A name for the instances that run this version now, in this process: unlike that of any others, and of its next life. */
export function instancesId(model: ServedModel): string {
  const known = ids.get(model);
  if (known !== undefined) return known;
  const made = randomUUID();
  ids.set(model, made);
  return made;
}
