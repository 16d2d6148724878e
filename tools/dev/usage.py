"""What a script says of itself when it is asked for help."""

import sys


def show(doc):
    """Prints the script's docstring and ends it, if the command line has -h or
    --help."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(doc.strip())
        sys.exit(0)


if __name__ == "__main__":
    show(__doc__)
