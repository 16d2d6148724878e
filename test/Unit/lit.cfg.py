# GoogleTest programs: each of their cases is one lit test.
import os
import sys

import lit.formats

# lit takes suites by name where it has no times yet: the longest tests first.
config.name = "Attn-Unit"
config.test_format = lit.formats.GoogleTest(".", "Tests")
config.test_exec_root = os.path.join(config.attn_build, "test", "Unit")
config.test_source_root = config.test_exec_root
sys.path.insert(0, os.path.join(config.attn_source, "tools", "dev"))
import machine_probe

# Which part of the long tests runs; tools/dev/test says it.
if "ATTN_SHARE" in os.environ:
    config.environment["ATTN_SHARE"] = os.environ["ATTN_SHARE"]
config.environment["UBSAN_OPTIONS"] = "print_stacktrace=1"
if config.sanitized:
    config.environment["ASAN_OPTIONS"] = machine_probe.ASAN_OPTIONS
