#!/usr/bin/env python3
"""Runs the cases against one server and prints what each observed, one JSON line a case."""
import argparse
import importlib
import json
import signal
import traceback
from pathlib import Path

from support import CASES, FATAL, Server

SECONDS_A_CASE = 30


def give_up(*_):
    raise TimeoutError(f"no answer within {SECONDS_A_CASE} seconds")


def observe(function, server):
    """What the case observed, or why it could not."""
    signal.alarm(SECONDS_A_CASE)
    try:
        return {"observed": function(server)}
    except Exception as error:
        traceback.print_exc()
        return {"failed": f"{type(error).__name__}: {error}"}
    finally:
        signal.alarm(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("http_address")
    parser.add_argument("grpc_address")
    parser.add_argument("repository", help="the directory that models.py wrote for this server")
    parser.add_argument("--only", default="", help="cases whose titles contain this")
    parser.add_argument("--reference", action="store_true", help="leave out the cases that end the reference server")
    options = parser.parse_args()
    for path in sorted((Path(__file__).parent / "cases").glob("*.py")):
        importlib.import_module(f"cases.{path.stem}")
    signal.signal(signal.SIGALRM, give_up)
    server = Server(options.http_address, options.grpc_address, options.repository)
    for title, function in CASES.items():
        if options.only in title and not (options.reference and title in FATAL):
            print(json.dumps({"case": title, **observe(function, server)}), flush=True)


if __name__ == "__main__":
    main()
