"""PTX of many attention ops from one run of attn-opt, which starts slowly."""

import re
import subprocess

ESCAPE = re.compile(r"\\([0-9A-F]{2})")


def run(opt, text, option):
    return subprocess.run([opt, "-", option], input=text, text=True,
                          stdout=subprocess.PIPE, check=True).stdout


def ptx_of(module):
    """The PTX in what -attn-to-binary made with format=isa."""
    text = re.search(r'assembly = "((?:[^"\\]|\\.)*)"', module).group(1)
    return ESCAPE.sub(lambda m: chr(int(m.group(1), 16)), text)


def to_ptx(opt, text, machine):
    """(PTX, {kernel: its schedule}) of the functions in a text."""
    tiles = run(opt, text, f"-attn-to-tile=machine={machine}")
    schedules = dict(re.findall(
        r"tile\.kernel @(\w+)\(.*#attn\.schedule<([^>]*)>", tiles))
    binary = run(opt, text, f"-attn-to-binary=machine={machine} format=isa")
    return ptx_of(binary), schedules
