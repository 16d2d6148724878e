"""Asks every script under a folder for help: `help.py TOOLS`.

A script is a Python file that does something when it is run, or an executable.
Each must print something and end with status 0, where neither PyTorch nor attn
is there.
"""

import os
import subprocess
import sys


def scripts(root):
    for folder, _, names in os.walk(root):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not name.endswith(".py"):
                if os.access(path, os.X_OK):
                    yield [path]
                continue
            with open(path, encoding="utf-8") as f:
                if 'if __name__ == "__main__":' in f.read():
                    yield [sys.executable, "-S", path]


def main():
    wrong = count = 0
    for command in scripts(os.path.abspath(sys.argv[1])):
        path = command[-1]
        done = subprocess.run([*command, "--help"],
                              capture_output=True, text=True, check=False,
                              cwd=os.path.dirname(path), timeout=120)
        count += 1
        if done.returncode or not done.stdout.strip():
            wrong += 1
            print(f"{path}: status {done.returncode}\n{done.stderr[-1000:]}")
    print(f"{count} scripts, {wrong} without help")
    return 1 if wrong or count < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
