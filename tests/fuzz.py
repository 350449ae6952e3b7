"""Random tests for a while: `python tests/fuzz.py SECONDS JOBS`, 0 seconds for ever.

Each pass draws new examples of every hypothesis test; a failure is kept in .hypothesis and tried
first next time. The last line counts the examples and says how many an hour that makes.
"""

import re
import subprocess
import sys
import time

# "    - 1000 passing, 0 failing, and 3 invalid test cases"
COUNTS = re.compile(r"- (\d+) passing(?: examples)?, (\d+) failing")


def main(seconds: float, jobs: str) -> int:
    command = [sys.executable, "-m", "pytest", "-n", jobs, "-q", "-x", "-m", "hypothesis"]
    command += ["--hypothesis-profile=fuzz", "--hypothesis-show-statistics", "tests"]
    start, passes, cases, code = time.monotonic(), 0, 0, 0
    try:
        while code == 0 and (seconds <= 0 or time.monotonic() - start < seconds):
            run = subprocess.run(command, capture_output=True, text=True)
            code, passes = run.returncode, passes + 1
            found = [tuple(map(int, pair)) for pair in COUNTS.findall(run.stdout)]
            cases += sum(passing + failing for passing, failing in found)
            if code:
                print(run.stdout.partition("Hypothesis Statistics")[0], run.stderr[-4_000:])
            print(f"pass {passes}: {cases} cases in {time.monotonic() - start:.0f} s", flush=True)
    except KeyboardInterrupt:
        pass
    hours = (time.monotonic() - start) / 3600
    verdict = "a failure" if code else "no failure"
    print(f"{cases} cases, {verdict}, {cases / hours:.0f} cases an hour")
    return code


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2]))
