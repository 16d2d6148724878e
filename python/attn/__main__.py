"""`python -m attn attn-plan ...`: the commands of libattn."""

import sys

from . import _commands


def main() -> int:
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command in ("-h", "--help"):
        print(f"usage: python -m attn {{{','.join(_commands.NAMES)}}} ...")
        return 0
    if command not in _commands.NAMES:
        print(f"expects a command, {', '.join(_commands.NAMES)}, but got "
              f"{command or 'nothing'}", file=sys.stderr)
        return 2
    return _commands.run(command, sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
