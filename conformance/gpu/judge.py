"""Judges the advice for programs of GPUs and CPUs: what it promises against what XLA says once it is followed.

Compiles the programs of `programs.py` for a GPU that isn't there, or those of `small.py` for this machine's CPU, as
written and as changed, and prints a table. Needs the Python package, and for GPUs an environment of `requirements.txt`.
The exit status is 1 if the report of a program doesn't name a change that was made, or if a change doesn't free half of
what is promised.
"""

import argparse
import importlib
import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"

import tilewise as tw

KEPT = 0.5
"""The least share of what is promised at best that must come true."""


def sized(count):
    return f"{count / 2**30:.2f} GiB"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--machine", default="gpu:h100", help="the card, or cpu")
    parser.add_argument("--only", default="", help="programs whose names begin so")
    parser.add_argument("--texts", help="a folder for the programs' reports")
    options = parser.parse_args()
    print("| program | change | takes | promised | frees | fits |\n| --- | --- | --- | --- | --- | --- |")
    failed = []
    programs = importlib.import_module("small" if options.machine == "cpu" else "programs").PROGRAMS
    for name, versions in programs.items():
        if not name.startswith(options.only):
            continue
        before = None
        for kind, words, make in versions:
            step = make()
            report = tw.audit(
                step.function, *step.arguments, machine=options.machine, jit_options={"donate_argnums": step.donated}
            )
            if options.texts:
                path = os.path.join(
                    options.texts, f"{name.partition(',')[0].replace(' ', '_')}.{kind or 'written'}.txt"
                )
                with open(path, "w", encoding="utf-8") as file:
                    file.write(report.table(width=80))
            promised = freed = ""
            if before is None:
                before = report
            elif kind == "none":
                if before.advice:
                    failed.append(f"{name}: {words}")
                promised, freed = "nothing", sized(max(before.peak_bytes - report.peak_bytes, 0))
            else:
                pieces = [piece for piece in before.advice if piece.kind == kind]
                advice = [piece.peak_bytes_saved or 0 for piece in pieces]
                certainty = "about" if any(piece.is_estimate for piece in pieces) else "up to"
                is_named = any(f"jax.{kind}" in (cause.remedy or "") for cause in before.causes)
                saved = before.peak_bytes - report.peak_bytes
                if not (advice or is_named) or saved <= 0 or saved < KEPT * sum(advice):
                    failed.append(f"{name}: {words}")
                promised, freed = f"{certainty} {sized(sum(advice))}" if advice else "named as a remedy", sized(saved)
            fits = {True: "yes", False: "no", None: ""}[report.fits]
            print(f"| {name} | {words} | {sized(report.peak_bytes)} | {promised} | {freed} | {fits} |", flush=True)
    sys.exit("\n".join(failed) if failed else 0)


if __name__ == "__main__":
    main()
