// The order of what warps do, with durations by the model, in Chrome's format.
// RUN: rm -rf %t.folder && mkdir %t.folder
// RUN: attn-run --on interpreter --machine h100_sxm --schedule "flash, query = 128, key = 64, stages = 2" --trace=%t.folder/wgmma.json %s | FileCheck %s
// RUN: %python %S/Inputs/check_trace.py %t.folder/wgmma.json wgmma 128
// RUN: attn-run --on interpreter --machine l4 --schedule "flash, query = 64, key = 64, stages = 2, warps = 4" --trace=%t.folder/mma.json %s | FileCheck %s
// RUN: %python %S/Inputs/check_trace.py %t.folder/mma.json mma 64
// CHECK: moved {{[0-9]+}} bytes of global memory

// Whole or not at all.
// RUN: not attn-run --on interpreter --trace=%t.none/a.json %s 2>&1 | FileCheck %s --check-prefix=FILE
// FILE: attn-run: error: --trace expects a file that can be written, but got '{{.*}}.none/a.json': {{.*}}No such file or directory
// RUN: not attn-run --on interpreter --schedule "flesh" --trace=%t.folder/no.json %s 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// SCHEDULE: error: {{.*}}flesh
// RUN: ls %t.folder | count 2

func.func @attention(%q: tensor<1x1x256x64xbf16>, %k: tensor<1x1x256x64xbf16>,
                     %v: tensor<1x1x256x64xbf16>) -> tensor<1x1x256x64xbf16> {
  %o = attn.forward %q, %k, %v
      : tensor<1x1x256x64xbf16>, tensor<1x1x256x64xbf16>,
        tensor<1x1x256x64xbf16> -> tensor<1x1x256x64xbf16>
  return %o : tensor<1x1x256x64xbf16>
}
