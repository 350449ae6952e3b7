"""Random tests for a while: `python tests/fuzz.py SECONDS JOBS`, 0 seconds for ever.

File after file, each draws new examples of its hypothesis tests; a failure ends it, is kept in
.hypothesis and tried first next time. The last line counts the examples, and says how many an hour
that makes.
"""

import itertools
import random
import re
import subprocess
import sys
import time
from pathlib import Path

# "    - 1000 passing, 0 failing, and 3 invalid test cases"
COUNTS = re.compile(r"- (\d+) passing(?: examples)?, (\d+) failing")
NOTHING = 5  # pytest's code where a file has no such test
FILES = [
    path for path in sorted(Path(__file__).parent.glob("test_*.py")) if "given" in path.read_text()
]


def main(seconds: float, jobs: str) -> int:
    command = [sys.executable, "-m", "pytest", "-n", jobs, "-q", "-x", "-m", "hypothesis or fuzz"]
    command += ["--hypothesis-profile=fuzz", "--hypothesis-show-statistics"]
    random.shuffle(FILES)
    start, cases, code = time.monotonic(), 0, 0
    try:
        for path in itertools.cycle(FILES):
            if code or 0 < seconds <= time.monotonic() - start:
                break
            run = subprocess.run([*command, str(path)], capture_output=True, text=True)
            code = run.returncode if run.returncode != NOTHING else 0
            found = [tuple(map(int, pair)) for pair in COUNTS.findall(run.stdout)]
            cases += sum(passing + failing for passing, failing in found)
            if code:
                print(run.stdout.partition("Hypothesis Statistics")[0], run.stderr[-4_000:])
            elapsed = time.monotonic() - start
            print(f"{path.name}: {cases} cases in {elapsed:.0f} s", flush=True)
    except KeyboardInterrupt:
        pass
    hours = (time.monotonic() - start) / 3600
    verdict = "a failure" if code else "no failure"
    print(f"{cases} cases, {verdict}, {cases / hours:.0f} cases an hour")
    return code


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2]))
