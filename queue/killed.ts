import { InferenceError, StatusCode } from "../protocol/error.ts";

/** Why a request is given up. @param model "" while it was only to be loaded */
export function killed(model: string): InferenceError {
  const what = model === "" ? "loading the model" : `running this request of model '${model}'`;
  return new InferenceError(StatusCode.Internal, `${what} ended its pool worker, more than once`);
}
