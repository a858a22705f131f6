import { flag, optional } from "../flag.ts";
import { integer, path, positiveNumber } from "../flag-type.ts";

/** Models that are written in Python. */
export const pythonFlags = {
  python: optional(
    path,
    "Interpreter of Python models, with numpy: .tidepool/venv/bin/python where the set-up has made it, else python3.",
  ),
  "python-execute-timeout": flag(
    positiveNumber,
    600,
    "Seconds that one execute of a Python model may take before its process is replaced.",
  ),
  "python-start-timeout": flag(
    positiveNumber,
    600,
    "Seconds that importing a Python model and its initialize may take.",
  ),
  "python-memory-limit": flag(
    integer(0),
    0,
    "Resident memory of one instance of a Python model, in MiB, before its process is replaced; 0: no limit.",
  ),
};
