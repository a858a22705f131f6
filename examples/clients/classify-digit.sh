#!/bin/bash
# Classifies one held-out handwritten digit with curl: classify-digit.sh [NUMBER 1…40] [URL]
set -euo pipefail
number=${1:-1} server=${2:-http://127.0.0.1:8000}
if ! [[ $number =~ ^([1-9]|[123][0-9]|40)$ ]]; then
  echo "classify-digit.sh: given '$number', expected a number from 1 to 40" >&2
  exit 2
fi

# One digit a line: {"digit":2,"image":[[0,0,7,…],…]}
line=$(sed -n "${number}p" "$(dirname "$0")/held-out-digits.jsonl")
digit=$(sed 's/.*"digit":\([0-9]\).*/\1/' <<< "$line")
image=$(sed 's/.*"image":\(\[\[.*\]\]\).*/\1/' <<< "$line")

echo "a handwritten $digit is read as:"
curl --fail-with-body --silent --show-error "$server/v2/models/digits/infer" --data @- << JSON
{
  "inputs": [{ "name": "IMAGE", "shape": [1, 8, 8], "datatype": "FP32", "data": [$image] }],
  "outputs": [{ "name": "PROBABILITIES", "parameters": { "classification": 3 } }]
}
JSON
echo
