#!/usr/bin/env python3
"""Sends pictures to the app of this folder with `requests`: `predict.py FILE…`; PREDICT_URL names another address."""
import os
import sys

import requests

files = [("files", open(name, "rb")) for name in sys.argv[1:]]
response = requests.post(os.environ.get("PREDICT_URL", "http://localhost:8080/predict"), files=files)
for result in response.json()["results"]:
    print(result["filename"], result.get("class", result.get("error")))
