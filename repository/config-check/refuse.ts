import { invalidArgument } from "../../protocol/error.ts";

/** Throws the complaint, completed with the model it is about. */
export type Refuse = (complaint: string) => never;

/** Refuses with the bare text, for complaints that name the model themselves. */
export function refuse(complaint: string): never {
  throw invalidArgument(complaint);
}

/** Refuses with the model's name behind the text. */
export function refuseFor(modelName: string): Refuse {
  return (complaint) => refuse(`${complaint} for ${modelName}`);
}
