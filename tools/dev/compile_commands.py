"""Names every source in a build's compile_commands.json, for editors and
clang-tidy: `compile_commands.py BUILD_FOLDER`.

Where several sources are compiled as one (attn_compile_together), CMake names
only the file that includes them.
"""

import json
import os
import re
import sys

import usage

INCLUDED = re.compile(r'^#include "(.*)"$', re.MULTILINE)


def of_each_source(entry):
    """The entries of the sources that are compiled by one: mostly itself."""
    whole = entry["file"]
    if os.path.basename(os.path.dirname(whole)) != "Unity":
        return [entry]
    with open(whole, encoding="utf-8") as f:
        sources = INCLUDED.findall(f.read())
    return [{**entry, "file": source,
             "command": entry["command"].replace(f" -c {whole}",
                                                 f" -c {source}")}
            for source in sources]


def complete(folder):
    """Names every source; all entries, in the order of the file."""
    path = os.path.join(folder, "compile_commands.json")
    with open(path, encoding="utf-8") as f:
        found = json.load(f)
    entries = [each for entry in found for each in of_each_source(entry)]
    if entries != found:
        with open(path + ".new", "w", encoding="utf-8") as f:
            json.dump(entries, f, indent=0)
        os.replace(path + ".new", path)
    return entries


def main():
    if len(sys.argv) != 2:
        sys.exit("expects the folder of a build")
    complete(sys.argv[1])


if __name__ == "__main__":
    usage.show(__doc__)
    main()
