"""Compares the memory that `tilewise audit` finds in compiled programs with what their compiler reports.

Workers compile programs of random classes for random generations of TPU, or for this machine's CPU, and write their texts. The
ledger goes to standard output, differences and progress to standard error. The exit status is 1 if fewer than 99 % of the
programs agree.
"""

import argparse
import json
import queue
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent
WORKERS = 2
SHARE = 0.99
"""The least share of programs whose sizes must all agree."""
ALIGNMENT = 16384
"""Bytes that temporaries are rounded up to: the least that they can be off by."""
MOST_GENERATIONS = 7
"""Of how many generations a class is that needs nothing special."""
EXACT = ["argument_bytes", "output_bytes", "alias_bytes", "temporary_bytes"]


def options():
    parser = parser_of(__doc__, "programs")
    parser.add_argument("--class", dest="name", help="compile programs of this class only")
    parser.add_argument("--generation", help="compile for this generation of TPU only")
    parser.add_argument("--cpu", action="store_true", help="compile for this machine's CPU, and compare offsets, too")
    parser.add_argument("--limit", type=float, default=120, help="seconds that one program may take to compile")
    parser.add_argument("--folder", type=Path, required=True, help="where the texts that differ stay")
    return parser.parse_args()


class Worker:
    """A process that compiles programs, and is started again when the compiler ends it or takes too long."""

    def __init__(self, limit, script):
        self.limit, self.script = limit, script
        self.process = None

    def ask(self, job):
        """The compiler's answer."""
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [sys.executable, self.script],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            self.process.stdout.readline()
        late = threading.Event()
        timer = threading.Timer(self.limit, lambda: (late.set(), self.process.kill()))
        timer.start()
        try:
            print(json.dumps(job), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        timer.cancel()
        if line:
            return json.loads(line)
        status = self.process.wait()
        why = f"took more than {self.limit:.0f} s" if late.is_set() else f"the compiler ended with status {status}"
        return {"error": why}

    def stop(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()


def plan(options, classes):
    """The programs to compile: every fourth a random composition, the others of each class in turn."""
    if options.cpu:
        # Programs that every TPU can run also run on a CPU.
        classes = {name: ["cpu"] for name, generations in classes.items() if len(generations) == MOST_GENERATIONS}
    choice = random.Random(options.seed)
    turn = []
    for number in range(options.count):
        if options.name:
            name = options.name
        elif number % 4 == 3:
            name = "composed"
        else:
            if not turn:
                turn = sorted(set(classes) - {"composed"})
                choice.shuffle(turn)
            name = turn.pop()
        generations = classes[name]
        generation = choice.choice(generations)
        if options.generation:
            if options.generation not in generations:
                continue
            generation = options.generation
        seed = f"{options.seed}-{number}"
        label = f"{name}.{generation}.{seed}"
        path = str(options.folder / f"{label}.hlo")
        yield {"class": name, "generation": generation, "seed": seed, "label": label, "path": path}


def audit(options, job):
    """The answer of `tilewise audit` for a text, or why there isn't one."""
    generation = job["generation"]
    machine = "cpu" if generation == "cpu" else f"tpu:{generation}"
    command = [options.tilewise, "audit", "--format", "json", "--all", "--machine", machine, job["path"]]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        said = json.loads(done.stdout)
    except ValueError:
        return {"error": f"exit status {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}"}
    if error := said.get("error"):
        return {"error": error["message"]}
    found = {name: said[name] for name in EXACT}
    standing = said["argument_bytes"] + said["output_bytes"] - said["alias_bytes"]
    if generation == "cpu":
        # JAX's peak on a CPU leaves the temporaries out.
        found["peak_memory"] = standing + said["constant_bytes"]
        found["offsets"] = {
            f"{each['instruction']}{{{','.join(map(str, each['shape_index']))}}}": each["offset"]
            for each in said["plan"]
            if each["offset"] is not None
        }
        return found
    # At its peak a program holds what stands for its whole run, and most of the temporaries of one memory space.
    live = {space["memory_space"]: space["peak_live_bytes"] or 0 for space in said["memory_spaces"]}
    host = live.pop(5, 0)
    found["peak_memory"] = host + max([live.pop(0, 0), *(standing + bytes for bytes in live.values())])
    return found


def compare(options, job, wanted):
    """One program's line of the ledger, after printing what differs."""
    found = audit(options, job)
    if "error" in found:
        tell(f"{job['label']}: tilewise does not read it: {found['error']}")
        return {"class": job["class"], "exact": dict.fromkeys([*EXACT, "peak_memory"], False), "off": 1.0}
    exact = {name: found[name] == wanted[name] for name in found}
    for name in [*EXACT, "peak_memory"] if "offsets" in found else EXACT:
        if not exact[name]:
            tell(f"{job['label']}: {name} {found[name]}, the compiler {wanted[name]}")
    if not exact.get("offsets", True):
        ours, theirs = found["offsets"], wanted["offsets"]
        moved = [name for name in ours | theirs if ours.get(name) != theirs.get(name)]
        tell(
            f"{job['label']}: {len(moved)} of {len(theirs)} offsets, such as {moved[0]} at {ours.get(moved[0])}, the "
            f"compiler {theirs.get(moved[0])}"
        )
    if all(exact[name] for name in exact if name != "peak_memory"):
        Path(job["path"]).unlink()
    else:
        Path(job["path"]).with_suffix(".json").write_text(json.dumps(wanted, indent=1))
    off = abs(found["temporary_bytes"] - wanted["temporary_bytes"]) / max(wanted["temporary_bytes"], ALIGNMENT)
    near = abs(found["peak_memory"] - wanted["peak_memory"]) <= 0.02 * wanted["peak_memory"]
    return {"class": job["class"], "exact": exact, "off": off, "near": near, "temporaries": wanted["temporary_bytes"]}


def tell(text):
    print(text, file=sys.stderr, flush=True)


def parser_of(doc, what):
    """Of the options that comparisons have: how many, the seed, the seconds, the command, and where the counts go."""
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("count", type=int, help=f"how many {what}")
    parser.add_argument("--seed", type=int, default=0, help="of all random choices")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no program after so many seconds")
    parser.add_argument("--tilewise", type=Path, required=True, help="the command")
    parser.add_argument("--result", type=Path, help="where the counts are written, too")
    return parser


def write_result(path, exact, total):
    """Says how many agree, and writes it where a path is given."""
    tell(f"{exact} of {total} agree")
    if path:
        path.write_text(json.dumps({"exact": exact, "total": total}))


def ask_all(jobs, options, script):
    """The number of each job, the answer of its worker, and the seconds it took, as they come.

    None is begun after as many seconds as the options say.
    """
    waiting, done = queue.Queue(), queue.Queue()
    for job in enumerate(jobs):
        waiting.put(job)
    end = time.monotonic() + options.seconds

    def work():
        worker = Worker(options.limit, script)
        while time.monotonic() < end:
            try:
                number, job = waiting.get_nowait()
            except queue.Empty:
                break
            start = time.monotonic()
            done.put((number, worker.ask(job), time.monotonic() - start))
        worker.stop()
        done.put(None)

    for _ in range(WORKERS):
        threading.Thread(target=work, daemon=True).start()
    working = WORKERS
    while working:
        answer = done.get()
        if answer is None:
            working -= 1
        else:
            yield answer


def compile_all(options, jobs):
    """Lines of the ledger, as programs are compiled."""
    for count, (number, wanted, seconds) in enumerate(ask_all(jobs, options, HERE / "worker.py"), 1):
        job = jobs[number]
        if "error" in wanted:
            why = " ".join(wanted["error"].split())[:300]
            tell(f"[{count}/{len(jobs)}] {job['label']}: not compiled: {why}")
            yield {"class": job["class"], "error": why}
        else:
            tell(f"[{count}/{len(jobs)}] {job['label']} ({seconds:.1f} s)")
            yield compare(options, job, wanted)


def ledger(rows):
    """A Markdown table: a line for each class, and one for all."""
    columns = ["class", "programs", "arguments", "outputs", "aliased", "temporaries", "within 2 %", "worst", "peak"]
    columns += ["with temporaries", "not compiled"]
    has_offsets = any("offsets" in row.get("exact", {}) for row in rows)
    columns += ["every offset"] * has_offsets
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    for name in [*sorted({row["class"] for row in rows}), "all"]:
        of_class = [row for row in rows if name in ("all", row["class"])]
        compared = [row for row in of_class if "exact" in row]
        cells = [name, len(compared), *(sum(row["exact"][size] for row in compared) for size in EXACT)]
        cells += [sum(row["off"] <= 0.02 for row in compared)]
        cells += [f"{max((row['off'] for row in compared), default=0):.1%}"]
        cells += [sum(row.get("near", False) for row in compared)]
        cells += [sum(row.get("temporaries", 0) > 0 for row in compared), len(of_class) - len(compared)]
        cells += [sum(row["exact"].get("offsets", False) for row in compared)] * has_offsets
        print(f"| {' | '.join(map(str, cells))} |")


def main():
    chosen = options()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    names = subprocess.run([sys.executable, HERE / "worker.py", "--classes"], capture_output=True, check=True)
    classes = json.loads(names.stdout)
    if chosen.name and chosen.name not in classes:
        sys.exit(f"no class {chosen.name}; there are {', '.join(sorted(classes))}")
    rows = list(compile_all(chosen, list(plan(chosen, classes))))
    ledger(rows)
    compared = [row for row in rows if "exact" in row]
    agree = sum(all(row["exact"][name] for name in EXACT) for row in compared)
    tell(f"{len(rows) - len(compared)} programs were not compiled")
    write_result(chosen.result, agree, len(compared))
    sys.exit(not compared or agree < SHARE * len(compared))


if __name__ == "__main__":
    main()
