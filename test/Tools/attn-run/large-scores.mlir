// Scores and their errors grow with the scale; limits follow, to 0.05 at most.
// RUN: attn-run --on interpreter --machine a100_80g --function rounded %s | FileCheck %s --check-prefix=TF32
// RUN: attn-run --on interpreter --machine a100_80g --function rounded --seed 2 %s | FileCheck %s --check-prefix=TF32
// RUN: attn-run --on interpreter --machine a100_80g --function rounded --seed 3 %s | FileCheck %s --check-prefix=TF32
// RUN: attn-run --on interpreter --machine a100_80g --function near %s | FileCheck %s --check-prefix=NEAR
// RUN: not attn-run --on interpreter --machine a100_80g --function far %s | FileCheck %s --check-prefix=FAR
// RUN: not attn-run --on interpreter --machine a100_80g --function far --json %s | FileCheck %s --check-prefix=JSON

// Factors in tf32 are off by 2^-11, which the LSE shows: its limit is four
// times what that leaves of the largest score, in the root mean square.
// TF32:      problem   f32 as tf32, {{.*}} scale 1
// TF32:      o         1x2x200x16xf32 {{.*}}(limit {{[67]}}e-03){{$}}
// TF32-NEXT: lse       1x2x200xf32 {{ *}}max error {{[3-9].[0-9]+}}e-03 (limit {{[12]}}e-02){{$}}
func.func @rounded(%q: memref<1x2x200x16xf32>, %k: memref<1x2x200x16xf32>,
                   %v: memref<1x2x200x16xf32>, %o: memref<1x2x200x16xf32>,
                   %lse: memref<1x2x200xf32>) {
  attn.forward %q, %k, %v scale(1.0) precision(tf32)
      outs(%o, %lse : memref<1x2x200x16xf32>, memref<1x2x200xf32>)
      : memref<1x2x200x16xf32>, memref<1x2x200x16xf32>, memref<1x2x200x16xf32>
  return
}

!t = memref<1x1x64x16xbf16>
!l = memref<1x1x64xf32>

// NEAR: dq        {{.*}} (limit 8e-03){{$}}
// NEAR: dk        {{.*}} (limit 8e-03){{$}}
// NEAR: dv        {{.*}} (limit 8e-03){{$}}
func.func @near(%do: !t, %q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %dq: !t,
                %dk: !t, %dv: !t) {
  attn.backward %do, %q, %k, %v, %o, %lse scale(1.0e3)
      outs(%dq, %dk, %dv : !t, !t, !t) : !t, !t, !t, !t, !t, !l
  return
}

// What rounds LSE may be more than 5 % of P: whatever comes, it is no success.
// FAR: dq        {{.*}} (limit 5e-02)  not comparable at this scale{{$}}
// FAR: dk        {{.*}} (limit 5e-02)  not comparable at this scale{{$}}
// FAR: dv        {{.*}} (limit 5e-02)  not comparable at this scale{{$}}
// JSON: "name":"dv","type":"1x1x64x16xbf16","ok":false
// JSON-SAME: "tolerance":0.05{{[0-9]*}},"comparable":false
// JSON-SAME: "ok":false}
func.func @far(%do: !t, %q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %dq: !t,
               %dk: !t, %dv: !t) {
  attn.backward %do, %q, %k, %v, %o, %lse scale(1.0e5)
      outs(%dq, %dk, %dv : !t, !t, !t) : !t, !t, !t, !t, !t, !l
  return
}

// A key that holds an infinity gives scores that overflow; LSE is judged by
// its own size then.
// RUN: attn-run --on interpreter --machine h100_sxm --function infinite --inputs inf %s | FileCheck %s --check-prefix=INF
// RUN: attn-run --on interpreter --machine h100_sxm --function infinite --inputs inf --seed 2 %s | FileCheck %s --check-prefix=INF
// INF: o    {{.*}}(limit 4e-03){{$}}
// INF-NEXT: lse  {{.*}}(limit 1e-04){{$}}
func.func @infinite(%q: memref<1x2x70x64xbf16>, %k: memref<1x2x70x64xbf16>,
                    %v: memref<1x2x70x64xbf16>, %o: memref<1x2x70x64xbf16>,
                    %lse: memref<1x2x70xf32>) {
  attn.forward %q, %k, %v scale(0.3)
      outs(%o, %lse : memref<1x2x70x64xbf16>, memref<1x2x70xf32>)
      : memref<1x2x70x64xbf16>, memref<1x2x70x64xbf16>, memref<1x2x70x64xbf16>
  return
}
