"""Runs one instance of a Python model for the server that has started this process."""

import sys

try:
    from tidepool_runner import process
except ModuleNotFoundError as error:
    sys.exit(f"{error}: Python models need numpy beside the interpreter that --python names")

# A model's own modules may have the names of these files.
sys.path.pop(0)
process.run()
