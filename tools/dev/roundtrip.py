"""attn-opt whose input and output are both parsed again.

Run as `roundtrip.py ATTN_OPT arguments...`; lit puts it in the place of
attn-opt when ATTN_ROUNDTRIP=1.  The input is checked by --verify-roundtrip
(text and bytecode).  What was printed is parsed and printed a second time,
and the test sees the second text, so an op that prints what it cannot parse
fails every test that shows it.
"""

import subprocess
import sys

import usage

# Runs that do not print IR on standard output.
NOT_IR = ("--verify-diagnostics", "-verify-diagnostics", "-o", "--help",
          "-help", "--version", "-version", "--show-dialects",
          "-show-dialects", "--emit-bytecode", "-emit-bytecode")
# Options that say how to print or to split; the second run needs them too.
PRINTING = ("split-input-file", "mlir-print-", "mlir-use-nameloc",
            "mlir-elide-", "allow-unregistered-dialect",
            "output-split-marker")
QUIET = ("mlir-print-ir", "mlir-print-stacktrace", "mlir-print-op-on")


def prints_ir(arguments):
    return not any(a.split("=")[0] in NOT_IR for a in arguments)


def keep(argument):
    name = argument.lstrip("-")
    return (argument.startswith("-") and name.startswith(PRINTING)
            and not name.startswith(QUIET))


def main():
    opt, arguments = sys.argv[1], sys.argv[2:]
    if not prints_ir(arguments):
        return subprocess.run([opt, *arguments], check=False).returncode
    first = subprocess.run([opt, "--verify-roundtrip", *arguments],
                           stdout=subprocess.PIPE, check=False)
    if first.returncode:
        sys.stdout.buffer.write(first.stdout)
        return first.returncode
    kept = [a for a in arguments if keep(a)]
    again = subprocess.run([opt, "-", "--verify-roundtrip", *kept],
                           input=first.stdout, stdout=subprocess.PIPE,
                           check=False)
    if again.returncode:
        sys.stderr.write("round trip: attn-opt cannot read what it printed\n")
        sys.stderr.buffer.write(first.stdout)
        return again.returncode or 1
    sys.stdout.buffer.write(again.stdout)
    return 0


if __name__ == "__main__":
    usage.show(__doc__)
    sys.exit(main())
