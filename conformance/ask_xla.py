"""Answers questions about shapes as the XLA inside jaxlib does.

Each line of standard input is a question, each line of standard output its answer, both in JSON;
the first line of output is the version. Some texts crash XLA, and this process with it: then the
first question without an answer is the one that did.
"""

import json
import os
import sys

import jaxlib
from jaxlib.xla_client import ProgramShape, Shape, XlaRuntimeError


def parse(text):
    try:
        return Shape(text)
    except XlaRuntimeError:
        return None


def accepted(shape, question):
    canonical, other = question["canonical"], question["other"]
    reprinted = None if canonical is None else parse(canonical)
    partner = None if other is None else parse(other)
    return {
        "text": str(shape),
        # Program shapes print without layouts.
        "without_layout": repr(ProgramShape([], shape)).removeprefix("() -> "),
        "proto": shape.to_serialized_proto().hex(),
        # The parser runs ValidateShape only on the elements of tuples.
        "valid": parse(f"({question['text']}\n)") is not None,
        "reprinted": None if reprinted is None else str(reprinted),
        "equal": None if partner is None else [shape == partner, partner == shape],
        "same_hash": None if partner is None else hash(shape) == hash(partner),
    }


def answer(question):
    try:
        shape = Shape(question["text"])
    except XlaRuntimeError as error:
        return {"refused": str(error)}
    return {"accepted": accepted(shape, question)}


def main():
    # XLA's messages are discarded; Python's own errors are still printed.
    sys.stderr = os.fdopen(os.dup(2), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    print(jaxlib.__version__, flush=True)
    for line in sys.stdin.buffer:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
