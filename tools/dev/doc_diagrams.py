"""The pictures of schedules: of every one whose pseudocode docs/schedules.md
shows, for the same problem.

attn-plan draws them; doc.py writes the files, or checks that they are still
the same.
"""

import os
import re

from machine_probe import ROOT

PAGE = os.path.join(ROOT, "docs", "schedules.md")
COMMAND = re.compile(
    r"^<!-- generated: \$ (attn-plan .*--schedule (\w+)) --explain",
    re.MULTILINE)


def pages(run):
    """Whole files: what makes each, of what runs a command line."""
    if not os.path.exists(PAGE):
        return {}
    with open(PAGE, encoding="utf-8") as f:
        found = COMMAND.findall(f.read())
    return {f"docs/figures/schedule-{name}.svg":
            lambda command=command: run(command + " --diagram") + "\n"
            for command, name in found}
