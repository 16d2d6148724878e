"""The pictures that attn-plan draws.

docs/schedules.md has one of every schedule whose pseudocode it shows, for the
same problem.  On any page a picture behind `<!-- drawn: $ COMMAND -->` is what
the command prints.  doc.py writes the files, or checks that they are still the
same.
"""

import glob
import os
import re

from machine_probe import ROOT

SCHEDULE = re.compile(
    r"^<!-- generated: \$ (attn-plan .*--schedule (\w+)) --explain",
    re.MULTILINE)
DRAWN = re.compile(
    r"^<!-- drawn: \$ (attn-plan .*) -->\n!\[[^]]*\]\((figures/[\w-]+\.svg)\)$",
    re.MULTILINE)


def commands():
    """By file, the command that draws it."""
    found = {}
    for page in sorted(glob.glob(os.path.join(ROOT, "docs", "*.md"))):
        with open(page, encoding="utf-8") as f:
            text = f.read()
        for command, file in DRAWN.findall(text):
            found[f"docs/{file}"] = command
        if os.path.basename(page) == "schedules.md":
            for command, name in SCHEDULE.findall(text):
                found[f"docs/figures/schedule-{name}.svg"] = \
                    f"{command} --diagram"
    return found


def pages(run):
    """Whole files: what makes each, of what runs a command line."""
    return {file: lambda command=command: run(command) + "\n"
            for file, command in commands().items()}
