"""What the machine code of Hopper kernels holds, without a disassembler.

    sass.py FILE.cubin    counts the instructions that matter, per kernel
    sass.py FILE.ptx      assembles it, counts, and says what is not as written

A kernel is as written when ptxas neither warns nor spills, and makes of each
wgmma one HGMMA (QGMMA for 8 bits), of each wgmma.fence and wgmma.wait_group one WARPGROUP.ARRIVE
and .DEPBAR, in that order.  Of a pipeline that it finds ill-formed it awaits
every product: right results, slowly.  The exit status is 1 for such a kernel.

A cubin is an ELF file whose sections .text.<kernel> are arrays of 16-byte
instructions; the low 12 bits are the opcode and the form of its operands.
They are documented nowhere; test/Dev/sass.test has an example of those that
decide, so that a new ptxas is checked for them.
"""

import collections
import os
import re
import struct
import subprocess
import sys
import tempfile

import cached
from machine_probe import ptxas_folder
import usage

NAMES = {0x9f0: "HGMMA.SS", 0xdf0: "HGMMA.RS", 0x9f3: "QGMMA.SS",
         0xdf3: "QGMMA.RS", 0x9c5: "WARPGROUP",
         0x9c8: "SETMAXREG",
         0x992: "MEMBAR", 0x387: "STL", 0x983: "LDL", 0x202: "MOV",
         0x2ca: "R2UR", 0x308: "MUFU", 0x209: "FMNMX", 0x221: "FADD",
         0x223: "FFMA", 0x823: "FFMA", 0xc23: "FFMA", 0x220: "FMUL",
         0x820: "FMUL", 0xc20: "FMUL", 0x23e: "F2FP", 0xf89: "SHFL",
         0x389: "SHFL"}
WAIT = 1 << 47  # In a WARPGROUP: DEPBAR, else ARRIVE.
WIDE = 7 << 12  # In the second word of a MEMBAR: for more than the block.
# What PTX becomes; a fence for what the copy engine reads of shared memory also
# waits within the block, and where a cluster meets everybody waits for both.
WRITTEN = (("HGMMA.RS", r"wgmma\.mma_async\.\S+16\s*\{[^}]*\}\s*,\s*\{"),
           ("HGMMA.SS", r"wgmma\.mma_async\.\S+16\s*\{[^}]*\}\s*,\s*[^{\s]"),
           ("QGMMA.RS", r"wgmma\.mma_async\.\S+e4m3\s*\{[^}]*\}\s*,\s*\{"),
           ("QGMMA.SS", r"wgmma\.mma_async\.\S+e4m3\s*\{[^}]*\}\s*,\s*[^{\s]"),
           ("ARRIVE", r"wgmma\.fence\b"),
           ("DEPBAR", r"wgmma\.wait_group\.sync\.aligned\s+(\d+)"),
           ("MEMBAR", r"fence\.proxy\.async\.shared\b"),
           ("MEMBAR", r"barrier\.cluster\.arrive\b(?!\.relaxed)"),
           ("MEMBAR.WIDE", r"barrier\.cluster\.arrive\b(?!\.relaxed)"))
COUNTED = ("HGMMA.SS", "HGMMA.RS", "QGMMA.SS", "QGMMA.RS", "MEMBAR",
           "MEMBAR.WIDE", "STL", "LDL")


def named(low, high):
    """The name of an instruction; that of an unknown one is its opcode."""
    name = NAMES.get(low & 0xfff, f"{low & 0xfff:03x}")
    if name == "WARPGROUP":
        return f"DEPBAR {high >> 8 & 7}" if low & WAIT else "ARRIVE"
    return "MEMBAR.WIDE" if name == "MEMBAR" and high & WIDE else name


def instructions(cubin):
    """{kernel: names of its instructions, in order}."""
    table, = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3a)
    sections = [struct.unpack_from("<IIQQQQ", cubin, table + i * size)
                for i in range(count)]
    result = {}
    for name, _, _, _, offset, length in sections:
        start = sections[names][4] + name
        title = cubin[start:cubin.index(b"\0", start)].decode()
        if title.startswith(".text."):
            result[title[6:]] = [named(*struct.unpack_from("<QQ", cubin, i))
                                 for i in range(offset, offset + length, 16)]
    return result


def written(ptx):
    """The same of a PTX text, of the instructions in WRITTEN."""
    result = {}
    for text in re.split(r"(?=\.visible \.entry )", ptx)[1:]:
        code = re.sub(r"//.*", "", text)
        found = sorted((m.start(), " ".join((name, *m.groups())))
                       for name, pattern in WRITTEN
                       for m in re.finditer(pattern, code))
        result[re.match(r"\S+ \S+ (\w+)", text).group(1)] = [
            name for _, name in found]
    return result


def assemble(ptx, ptxas):
    """(the cubin, what ptxas -v says), kept for the next time."""
    version = subprocess.run([ptxas, "--version"], capture_output=True,
                             check=True).stdout
    return cached.get([version, ptx.encode()], lambda: assembled(ptx, ptxas))


def assembled(ptx, ptxas):
    chip = re.search(r"\.target (\w+)", ptx).group(1)
    with tempfile.TemporaryDirectory() as folder:
        source, target = (os.path.join(folder, f) for f in ("ptx", "cubin"))
        with open(source, "w", encoding="utf-8") as f:
            f.write(ptx)
        run = subprocess.run([ptxas, "-v", "-arch", chip, source, "-o", target],
                             capture_output=True, text=True, check=False)
        if run.returncode:
            sys.exit(f"expects PTX that assembles, but got: {run.stderr}")
        with open(target, "rb") as f:
            return f.read(), run.stderr


def steps(names):
    """Of a pipeline, "A1A0": arrive, wait for all but 1, arrive, ..."""
    return "".join(n[0] if n == "ARRIVE" else n[-1] for n in names
                   if n[:6] in ("ARRIVE", "DEPBAR"))


def releases(ptx, kernel):
    """Fences for the whole GPU in the text of a kernel."""
    start = ptx.index(f".visible .entry {kernel}(")
    text = ptx[start:].split("\n}", 1)[0]
    return len(re.findall(r"\.release\.gpu\b|fence\.acq_rel\.gpu\b", text))


def faults(ptx, said, cubin):
    """{kernel: sentences about what is not as written}."""
    result, made = {}, instructions(cubin)
    for kernel, wanted in written(ptx).items():
        got = made[kernel]
        wrong = result[kernel] = [
            line for line in re.findall(r"\(C75\d\d\) .*", said)
            if f"'{kernel}'" in line or "function '" not in line]
        memory = re.search(rf"properties for {kernel}\n\s*(.*)", said).group(1)
        if re.search(r"\b[1-9]\d* bytes", memory):
            wrong.append(memory)
        pairs = [(name, str(wanted.count(name)), str(got.count(name)))
                 for name in COUNTED]
        pairs.append(("of arrive and waits", steps(wanted), steps(got)))
        wrong += [f"expects {expected} {name}, but got {found[:40]}"
                  for name, expected, found in pairs if expected != found]
    return result


def main():
    if len(sys.argv) != 2 or sys.argv[1][:1] == "-":
        sys.exit(__doc__)
    with open(sys.argv[1], "rb") as f:
        data = f.read()
    found = {}
    if data[:4] != b"\x7fELF":
        ptx = data.decode()
        data, said = assemble(ptx, os.path.join(ptxas_folder() or "", "ptxas"))
        found = faults(ptx, said, data)
    for kernel, names in sorted(instructions(data).items()):
        counts = sorted(collections.Counter(names).items())
        print(f"{kernel}: {len(names)} instructions, " + ", ".join(
            f"{n} {name}" for name, n in counts if name[0].isupper()))
        for sentence in found.get(kernel, ()):
            print(f"  not as written: {sentence}")
    sys.exit(1 if any(found.values()) else 0)


if __name__ == "__main__":
    usage.show(__doc__)
    main()
