"""Runs a command and prints its peak memory and the time it took.

`cost.py MEGABYTES SECONDS COMMAND...`: the exit status is that of the command,
or 1 when it (with all that it started) needed more than the bounds.  Time is
that of the processor, so that a busy machine does not fail.
"""

import resource
import subprocess
import sys


def main():
    if len(sys.argv) < 4:
        sys.exit("expects MEGABYTES SECONDS COMMAND..., but got less")
    most_megabytes, most_seconds = float(sys.argv[1]), float(sys.argv[2])
    status = subprocess.run(sys.argv[3:], check=False,
                            stdout=subprocess.DEVNULL).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    megabytes = used.ru_maxrss / 1024  # of the largest process, in KiB
    seconds = used.ru_utime + used.ru_stime
    print(f"status {status}, {megabytes:.0f} MB, {seconds:.2f} s")
    if megabytes > most_megabytes:
        print(f"expects at most {most_megabytes:g} MB, but needs {megabytes:.0f}")
        return 1
    if seconds > most_seconds:
        print(f"expects at most {most_seconds:g} s, but needs {seconds:.2f}")
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
