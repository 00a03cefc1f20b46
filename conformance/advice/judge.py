"""Judges the advice of `tilewise audit`: its promises against the compiler's figures once it is followed.

Each case is compiled as written, and with an expert's changes in its source. Advice that its own code tells how to
follow, without touching the program, is followed by the judge; the rest is measured by the change of its kind and
target. Code that computes something is also run on small shapes, and all results are compared with the program's
(`compare.py`). The table goes to standard output, progress to standard error. The exit status is 1 if too little of the
advice holds, any of it makes a program larger, or any code changes a result.
"""

import argparse
import csv
import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
COMPARE = [HERE / "compare.py", HERE / "widen.py"]
"""The files that decide how results are compared."""
FOLLOW = [HERE / "follow.py", *sorted((HERE.parents[1] / "python/package/tilewise/_microbatch").glob("*.py"))]
"""The files that decide how advice is followed."""
UNSEEN = ("models", "trainings", "reported", "sampled")
"""The modules of programs that were written after the rules, a set each. Some of each set led to a rule's change."""
RECORDED = "## Programs whose sources are gone\n"
"""From this heading on, TABLE.md was judged once, and stays."""
IN_PARTS = ("_in_parts(", "tw.microbatch(")
"""Code that goes through the batch in parts has one of these."""
WORKERS = 2
MIB = 1 << 20
KEPT = 0.8
"""The least share of a promise that must come true."""
KEPT_OF_BOUND = 0.5
"""The least share of a promised bound or estimate that must come true."""
BEYOND = 1.1
"""The most that a bound may promise, as a multiple of the bytes that it frees."""
CLOSE = 0.2
"""The largest relative difference of freed bytes from an exact promise."""
HOLDING = 0.9
"""The least share of the advice that must hold."""
NOTABLE = 0.2
"""The least share of a program's memory that an expert's change must free for the advice to have to find it."""
FOUND = 0.85
"""The least share of such programs whose first advice must be of a kind that frees half as much."""


def options():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--only", metavar="NAME", action="append", help="the case of this name only; may be given again"
    )
    parser.add_argument("--limit", type=float, default=600, help="seconds that one case may take to compile")
    parser.add_argument("--tilewise", type=Path, required=True, help="the command")
    parser.add_argument("--folder", type=Path, required=True, help="where texts and measurements are kept")
    parser.add_argument("--as-kept", action="store_true", help="judge what the folder has, and compile nothing")
    parser.add_argument("--write", action="store_true", help="renew TABLE.md and cases.csv")
    return parser.parse_args()


def digest_of(*texts):
    """A digest that changes with any of the texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


class NotMeasured(Exception):
    """A case that the compiler, or the comparison of its results, gives no answer for."""


def kept_or(options, path, digest, ask):
    """The rows that a file keeps for a digest, or those that `ask` gives, which it keeps then.

    A timeout is kept as well, as no rows, until the limit is raised.
    """
    if path.exists():
        found = json.loads(path.read_text())
        if found["digest"] == digest and (found["rows"] or found["limit"] >= options.limit):
            return found["rows"]
    if options.as_kept:
        raise NotMeasured("isn't compiled yet, or its results aren't compared")
    rows = ask()
    path.write_text(json.dumps({"digest": digest, "rows": rows, "limit": options.limit}, indent=1))
    return rows


def answers(options, command, lines):
    """The rows that a script prints; none if it takes too long."""
    try:
        done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=options.limit)
    except subprocess.TimeoutExpired:
        return []
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or not rows:
        raise NotMeasured(f"{command[1].name} ended with status {done.returncode}: {done.stderr[-1000:]}")
    return rows


def written(advice, *keys):
    """Advice as a script reads it: a line each, with these keys."""
    return "".join(json.dumps({key: given.get(key) for key in keys}) + "\n" for given in advice)


def asked(options, case, advice=()):
    """The output of `compile.py` for a case, or for advice followed; kept until something that decides it changes."""
    lines = written(advice, "imports", "code")
    digest = digest_of(case["digest"], lines, *(path.read_text() for path in FOLLOW if advice))
    path = options.folder / f"{case['label']}{'.followed' if advice else ''}.json"
    command = [sys.executable, HERE / "compile.py", case["name"], case["tpu"], options.folder]
    command += ["--follow"] if advice else []
    rows = kept_or(options, path, digest, lambda: answers(options, command, lines))
    if not rows:
        raise NotMeasured(f"takes more than {options.limit:.0f} s to compile")
    return rows


def compared(options, case, advice):
    """The output of `compare.py` for the code of advice that computes something."""
    lines = written(advice, "imports", "code", "sentence")
    digest = digest_of(case["digest"], lines, *(path.read_text() for path in [*COMPARE, *FOLLOW]))
    command = [sys.executable, COMPARE[0], case["name"], case["tpu"]]
    late = {"same": None, "error": f"takes more than {options.limit:.0f} s to run"}
    path = options.folder / f"{case['label']}.compared.json"
    return kept_or(options, path, digest, lambda: answers(options, command, lines) or [late] * len(advice))


def computes(given):
    """Whether its code computes something, and doesn't only say how the program is compiled and called."""
    return any(sign in (given.get("code") or "") for sign in (*IN_PARTS, "def losses_of"))


def audit(options, case, text):
    """The output of `tilewise audit` for one of a case's programs."""
    command = [options.tilewise, "audit", "--format", "json", "--tpu", case["tpu"], options.folder / text]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(done.stdout)
    except (ValueError, KeyError):
        sys.exit(f"{text} is not audited: {done.stdout[-300:]}{done.stderr[-300:]}")


def longer(before, after):
    """By which share the estimated time of a run changes; `None` where the two can't be compared."""
    before, after = before.get("time"), after.get("time")
    if not before or not after or not before["estimate_seconds"]:
        return None
    # Operations without the compiler's cycles, and loops of unknown trip counts.
    left_out = [
        ({row["kind"]: row["operations"] for row in time["unpriced"]}, time["is_at_least"]) for time in (before, after)
    ]
    return after["estimate_seconds"] / before["estimate_seconds"] - 1 if left_out[0] == left_out[1] else None


def is_runnable(given):
    """Whether its code can be run as it stands, where the function is called: the function itself stays as it is."""
    kinds = {("order", "argument"), ("order", "result"), ("donate", "argument")}
    code = given.get("code") or ""
    return bool(code) and (given["kind"], given["target"]) in kinds or any(sign in code for sign in IN_PARTS)


@dataclass
class Verdict:
    """A piece of advice, and its outcome."""

    kind: str
    target: str
    shape: str
    promised: int
    is_bound: bool
    is_estimate: bool
    how: str = ""
    """Whether its code was run, or which change was measured in its place."""
    owed: int = 0
    """The bytes promised by all the advice up to this that one change follows."""
    freed: int | None = None
    best: int | None = None
    """The most that following it in any way freed."""
    same: bool | None = None
    """Whether its code computes the same as the program; `None` where it computes nothing, or could not be run."""
    longer: float | None = None
    """By which share the estimated time of a run changes; `None` where the two can't be compared."""
    limit: float = 0
    """The most that it may free by its promise: for parts of a batch, with any number of them."""
    is_comparable: bool = True
    """Whether it was measured in the program that it is promised of: one in which all advice before it is followed."""

    @property
    def certainty(self):
        """The prefix of promised bytes that are a bound or an estimate."""
        return "up to " if self.is_bound else "about " if self.is_estimate else ""

    @property
    def holds(self):
        """Whether its promise comes true."""
        if self.certainty:
            fits = self.promised <= BEYOND * self.best + MIB
            return fits and self.freed >= KEPT_OF_BOUND * self.owed
        return self.freed >= KEPT * self.owed

    @property
    def is_exact(self):
        """Whether it frees the promised bytes, neither much less nor much more."""
        return abs(self.freed - self.owed) <= CLOSE * self.owed

    @property
    def is_beaten(self):
        """Whether it frees more than its promised bound."""
        return self.is_bound and self.is_comparable and self.freed > BEYOND * self.limit + MIB

    @property
    def harms(self):
        """Whether the program becomes larger."""
        return self.freed < -MIB


def in_any_number_of_parts(given):
    """The factor by which more parts of a batch may free more than the parts that a promise is for."""
    parts = re.search(r"(\d+) (?:(?:parts|blocks) free this much|chunks need)", given["sentence"])
    parts = int(parts[1]) if parts else 2 if "halves free this much" in given["sentence"] else None
    return parts / (parts - 1) if parts else 1


def judged(options, case, advice, ran):
    """The verdicts on advice; `ran` is the output of `compile.py` for the code of each piece, where that can be run."""
    verdicts, owed, limits, before, report = [], Counter(), Counter(), case["total"], case["report"]
    for given, followed in zip(advice, ran, strict=True):
        about = given["kind"], given["target"]
        found = Verdict(*about, given["shape"], given["peak_bytes_saved"], given["is_bound"], given["is_estimate"])
        freed = {
            change["variant"]: change["freed"]
            for change in case["changes"]
            if (change["kind"], change["target"]) == about and found.shape.startswith(change["shape"])
        }
        found.owed, found.limit = found.promised, found.promised * in_any_number_of_parts(given)
        if followed and "total" in followed:
            found.how, found.freed = "its code", before - followed["total"]
            after = audit(options, case, followed["text"])
            found.longer, before, report = longer(report, after), followed["total"], after
        elif freed:
            found.how = max(freed, key=freed.get)
            found.freed = freed[found.how]
            owed[found.how] += found.owed
            limits[found.how] += found.limit
            found.owed, found.limit = owed[found.how], limits[found.how]
            text = next(change["text"] for change in case["changes"] if change["variant"] == found.how)
            found.longer = longer(case["report"], audit(options, case, text))
        if followed and "error" in followed:
            found.how += f" (its code is refused: {followed['error'][:120]})"
        if found.freed is not None:
            found.best = max([found.freed, *freed.values()])
        found.is_comparable = {verdict.how for verdict in verdicts} <= {found.how}
        verdicts.append(found)
    # A change that several pieces promise is measured against all of it.
    last = {found.how: found for found in verdicts if found.how in limits}
    for found in verdicts:
        found.limit = max(found.limit, last.get(found.how, found).limit)
    return verdicts


def measured(options, name, tpu, about):
    """A case for one generation: its total, the bytes that its changes free, and the verdicts on its advice."""
    label = f"{name}.{tpu}"
    case = {"name": name, "tpu": tpu, "label": label} | {key: about[key] for key in ("digest", "origin", "is_public")}
    rows = asked(options, case)
    if "error" in rows[0]:
        raise NotMeasured(rows[0]["error"])
    case["total"] = rows[0]["total"]
    case["changes"] = [row | {"freed": case["total"] - row["total"]} for row in rows[1:] if "total" in row]
    case["failed"] = [row for row in rows[1:] if "error" in row]
    case["report"] = audit(options, case, rows[0]["text"])
    advice = [given for given in case["report"]["advice"] if given["peak_bytes_saved"]]
    runnable = [given for given in advice if is_runnable(given)]
    ran = iter(asked(options, case, runnable) if runnable else [])
    case["verdicts"] = judged(options, case, advice, [next(ran) if given in runnable else None for given in advice])
    computing = [verdict for verdict, given in zip(case["verdicts"], advice, strict=True) if computes(given)]
    rows = compared(options, case, list(filter(computes, advice))) if computing else []
    for verdict, row in zip(computing, rows, strict=True):
        verdict.same = row["same"]
        if not row["same"]:
            verdict.how += f" ({row['error']})"
    tell(label)
    return case


def attempted(options, name, tpu, about):
    """A measured case, or the reason for its absence, as a sentence."""
    try:
        return measured(options, name, tpu, about)
    except NotMeasured as error:
        sentence = f"`{name}` for {tpu}: {error}."
        tell(sentence)
        return sentence


def best(case):
    """The change that frees most."""
    return max(case["changes"], key=lambda change: change["freed"], default=None)


def is_notable(case):
    """Whether an expert frees much of the program's memory."""
    return bool(case["changes"]) and best(case)["freed"] >= NOTABLE * case["total"]


def is_found(case):
    """Whether the first advice is of a kind that frees at least half as much as the best change."""
    first = case["verdicts"][0].kind if case["verdicts"] else None
    freed = [(change["kind"], change["freed"]) for change in case["changes"]]
    freed += [(verdict.kind, verdict.freed or 0) for verdict in case["verdicts"]]
    return first in {kind for kind, bytes in freed if bytes >= best(case)["freed"] / 2}


def mib(bytes):
    """MiB, to a tenth."""
    return f"{bytes / MIB:.1f}"


def table(cases):
    """The lines of a Markdown table: one for each piece of advice."""
    columns = ["program", "TPU", "MiB", "advice", "promised", "freed", "kept", "est. time", "measured by"]
    yield f"| {' | '.join([*columns, 'best change', 'frees', 'first is best'])} |"
    yield "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | --- | --- | ---: | --- |"
    for case in cases:
        change = best(case)
        expert = [f"{change['kind']} {change['target']}", mib(change["freed"])] if change else ["none", ""]
        expert.append(("yes" if is_found(case) else "no") if is_notable(case) else "")
        lead = [f"`{case['name']}`", case["tpu"], mib(case["total"])]
        for verdict in case["verdicts"]:
            row = [f"{verdict.kind} {verdict.target} `{verdict.shape}`"]
            row += [verdict.certainty + mib(verdict.promised)]
            if verdict.freed is None:
                row += ["", "", "", verdict.how or "unjudged"]
            else:
                time = "" if verdict.longer is None else f"{verdict.longer:+.0%}"
                row += [mib(verdict.freed), f"{verdict.freed / verdict.owed:.0%}", time, verdict.how]
            yield f"| {' | '.join([*lead, *row, *expert])} |"
            lead, expert = [""] * 3, [""] * 3
        if not case["verdicts"]:
            yield f"| {' | '.join([*lead, 'none', *[''] * 5, *expert])} |"


def not_measured(found):
    """Whole programs, and single changes of others, that aren't measured: a line each of a list in Markdown."""
    for case in found:
        if isinstance(case, str):
            yield f"- {case}"
        else:
            label = f"`{case['name']}` for {case['tpu']}"
            yield from (f"- {label}, with the change `{row['variant']}`: {row['error']}." for row in case["failed"])


def summary(cases):
    """A summary of all cases, in lines, and whether they are good enough."""
    lines, is_enough = summary_of(cases)
    sets = [
        ("Of programs of public libraries alone, most of them written after the rules:", lambda case: case["is_public"])
    ]
    for module in UNSEEN:
        words = f"Of those of `cases/{module}.py` alone, all of them written after the rules:"
        sets.append((words, lambda case, module=module: case["origin"] == module))
    for words, is_of in sets:
        some = list(filter(is_of, cases))
        if 0 < len(some) < len(cases):
            lines += [words, *summary_of(some)[0][1:]]
    return lines, is_enough


def summary_of(cases):
    """A summary of some cases, and whether they are good enough."""
    verdicts = [verdict for case in cases for verdict in case["verdicts"]]
    known = [verdict for verdict in verdicts if verdict.freed is not None]
    holding, harmful = sum(verdict.holds for verdict in known), sum(verdict.harms for verdict in known)
    notable = [case for case in cases if is_notable(case)]
    found = sum(map(is_found, notable))
    refused = sum("refused" in verdict.how for verdict in verdicts)
    changed, same = (sum(verdict.same is is_same for verdict in verdicts) for is_same in (False, True))
    ran = sum(verdict.how == "its code" for verdict in known)
    kept = [verdict.freed / verdict.owed for verdict in known]
    comparable = [verdict for verdict in known if verdict.is_comparable]
    exact = [verdict for verdict in comparable if not verdict.certainty]
    estimates = sorted(verdict.freed / verdict.owed for verdict in comparable if verdict.is_estimate)
    near = sum(abs(share - 1) <= CLOSE for share in estimates)
    close, beaten = sum(verdict.is_exact for verdict in exact), sum(verdict.is_beaten for verdict in known)
    lines = [
        "Advice is followed once what comes before it is, where its code can be run. Otherwise a change by hand stands "
        "for all advice of its kind, and what is kept is the share of all that this advice promises.",
        f"{len(cases)} programs; {len(verdicts)} pieces of advice, of which {len(known)} judged, {ran} by running their "
        f"own code, which {refused} times is refused.",
        f"{holding} of {len(known)} free at least {KEPT:.0%} of what they promise (or, promised as a bound or an estimate, "
        f"{KEPT_OF_BOUND:.0%}, and that is at most {BEYOND} times what such a change frees); {harmful} make the "
        "program larger.",
        f"Of what is promised, {median(kept or [1]):.0%} is freed in the median; {sum(share < KEPT for share in kept)} of "
        f"{len(kept)} free less than {KEPT:.0%} of it.",
        f"{close} of {len(exact)} that promise a number, neither a bound nor an estimate, are within {CLOSE:.0%} of it; {beaten} "
        "free more than they promise as a bound, in any number of parts. What a change by hand frees is compared where no other "
        "advice comes before it.",
        f'{near} of {len(estimates)} estimates, marked "about", are within {CLOSE:.0%}'
        + (f"; the least is freed to {estimates[0]:.0%}, the most to {estimates[-1]:.0%}." if estimates else "."),
        f"{changed + same} pieces of code compute something and were run on small shapes; {changed} of them change a "
        "result.",
        f"{found} of {len(notable)} programs of which an expert frees {NOTABLE:.0%} or more have first advice of a kind "
        "that frees at least half as much.",
    ]
    return lines, holding >= HOLDING * len(known) and not harmful and not changed and found >= FOUND * len(notable)


def tell(text):
    """Prints progress."""
    print(text, file=sys.stderr, flush=True)


def write_cases(cases, path):
    """All measurements: a row for each change, and one for a program that nothing helps."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["program", "tpu", "variant", "kind", "target", "shape", "measured", "total"])
        for case in cases:
            nothing = {"variant": "", "kind": "none", "target": "value", "shape": "", "freed": 0}
            for change in case["changes"] or [nothing]:
                about = [change[key] for key in ("variant", "kind", "target", "shape", "freed")]
                writer.writerow([case["name"], case["tpu"], *about, case["total"]])


def main():
    """Judges all cases, or one."""
    chosen = options()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    listed = json.loads(subprocess.run([sys.executable, HERE / "compile.py"], capture_output=True, check=True).stdout)
    if unknown := set(chosen.only or ()) - set(listed):
        sys.exit(f"no case {', '.join(sorted(unknown))}; there are {', '.join(sorted(listed))}")
    jobs = [
        (name, tpu, about)
        for name, about in sorted(listed.items())
        if not chosen.only or name in chosen.only
        for tpu in about["tpus"]
    ]
    with ThreadPoolExecutor(WORKERS) as pool:
        found = list(pool.map(lambda job: attempted(chosen, *job), jobs))
    cases = [case for case in found if not isinstance(case, str)]
    lines, is_enough = summary(cases)
    text = "\n".join([*table(cases), *[part for line in lines for part in ("", line)]])
    if missing := list(not_measured(found)):
        text += "\n".join(["\n\nNot measured:\n", *missing])
    print(text)
    if chosen.write:
        head = "# Advice, promised and measured\n\n<!-- Renewed by `cargo xtask advice --write`. -->\n\n"
        path = HERE / "TABLE.md"
        recorded = path.read_text().partition(RECORDED)[2]
        path.write_text(f"{head}{text}\n\n{RECORDED}{recorded}")
        write_cases(cases, HERE / "cases.csv")
    sys.exit(not is_enough)


if __name__ == "__main__":
    main()
