// Masks, machines and schedules that do not parse or mean nothing.
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{expects a mask, but got 'diagonal'}}
// expected-note @below {{masks: none, causal, causal_bottom_right, window<L, R>, prefix<P>}}
func.func private @f() attributes {a = #attn.mask<diagonal>}

// -----

// expected-error @below {{expects a mask, but got 'window'}}
// expected-note @below {{masks: none, causal, causal_bottom_right, window<L, R>, prefix<P>}}
func.func private @f() attributes {a = #attn.mask<window>}

// -----

// expected-error @below {{expects a mask, but got 'window<3>'}}
// expected-note @below {{masks: none, causal, causal_bottom_right, window<L, R>, prefix<P>}}
func.func private @f() attributes {a = #attn.mask<window<3>>}

// -----

// expected-error @below {{expected integer value}}
func.func private @f() attributes {a = #attn.mask<window<a, b>>}

// -----

// expected-error @below {{integer value too large}}
func.func private @f() attributes {a = #attn.mask<window<99999999999999999999, 0>>}

// -----

// expected-error @below {{expects a mask, but got 'causal<1, 2>'}}
// expected-note @below {{masks: none, causal, causal_bottom_right, window<L, R>, prefix<P>}}
func.func private @f() attributes {a = #attn.mask<causal<1, 2>>}

// -----

// expected-error @below {{expects the keys of the prefix between 0 and 1073741824, but got -3}}
func.func private @f() attributes {a = #attn.mask<prefix<-3>>}

// -----

func.func @f(%q: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expects a mask, but got 'sliding'}}
  // expected-note @below {{masks: none, causal, causal_bottom_right, window<L, R>, prefix<P>}}
  %o = attn.forward %q, %q, %q mask(sliding) : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
}

// -----

func.func @f(%q: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expected valid keyword}}
  %o = attn.forward %q, %q, %q mask() : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
}

// -----

// expected-error @below {{expects the name of a machine, but got 'h1000'}}
// expected-note @below {{known machines: gtx_1060, }}
module attributes {attn.machine = #attn.machine<h1000>} {}

// -----

// expected-error @below {{cache_of_wonders}}
// expected-note-re @below {{fields: {{.*}}smem_bytes_per_block}}
module attributes {attn.machine = #attn.machine<h100_sxm, cache_of_wonders = 1>} {}

// -----

// expected-error @below {{expects every field once, but got "sms" twice}}
module attributes {attn.machine = #attn.machine<h100_sxm, sms = 1, sms = 2>} {}

// -----

// expected-error @below {{smem_bytes_per_block}}
// expected-note @below {{fields: }}
module attributes {attn.machine = #attn.machine<h100_sxm, smem_bytes_per_block = -5>} {}

// -----

// expected-error @below {{smem_bytes_per_block}}
// expected-note @below {{fields: }}
module attributes {attn.machine = #attn.machine<h100_sxm, smem_bytes_per_block = 0.5>} {}

// -----

// expected-error @below {{expects l2_bytes between 1 and 1000000000000000, but got 0}}
// expected-note @below {{fields: }}
module attributes {attn.machine = #attn.machine<h100_sxm, l2_bytes = 0>} {}

// -----

// expected-error @below {{expects smem_bytes_per_sm to be at least 233472, smem_bytes_per_block and 1024 that the system keeps, but got 65536}}
// expected-note @below {{fields: }}
module attributes {attn.machine = #attn.machine<h100_sxm, smem_bytes_per_sm = 65536>} {}

// -----

// expected-error @below {{expected floating point literal}}
module attributes {attn.machine = #attn.machine<h100_sxm, sms = many>} {}

// -----

// expected-error @below {{expected valid keyword}}
module attributes {attn.machine = #attn.machine<>} {}

// -----

// expected-error @below {{expects 'attn.machine' to be a #attn.machine, but got "h100_sxm"}}
module attributes {attn.machine = "h100_sxm"} {}

// -----

// expected-error @below {{expects 'attn.machine' on a module, but got it here}}
func.func private @f() attributes {attn.machine = #attn.machine<h100_sxm>}

// -----

// expected-error @below {{expects 'attn.machine' as only attribute of the attn dialect, but got 'attn.machin'}}
module attributes {attn.machin = #attn.machine<h100_sxm>} {}

// -----

// expected-error @below {{expects the name of a schedule, but got 'flush'}}
// expected-note-re @below {{schedules: {{.*}}flash}}
func.func private @f() attributes {a = #attn.schedule<flush, query = 64>}

// -----

// expected-error @below {{expects the name of a tile size of flash, but got 'rows'}}
// expected-note @below {{tile sizes of flash: query, key, stages, warps}}
func.func private @f() attributes {a = #attn.schedule<flash, rows = 64>}

// -----

// expected-error @below {{expects query to be at least 1, but got 0}}
func.func private @f() attributes {a = #attn.schedule<flash, query = 0>}

// -----

// expected-error @below {{expects every tile size once, but got 'query' twice}}
func.func private @f() attributes {a = #attn.schedule<flash, query = 64, query = 128>}

// -----

// expected-error @below {{expected integer value}}
func.func private @f() attributes {a = #attn.schedule<flash, query = 6.4>}

// -----

// expected-error @below {{expected '='}}
func.func private @f() attributes {a = #attn.schedule<flash, query>}

// -----

// expected-error @below {{unknown attribute `plan` in dialect `attn`}}
func.func private @f() attributes {a = #attn.plan<flash>}

// -----

func.func @f(%q: tensor<1x1x8x8xf16>) {
  // expected-error @below {{attribute 'schedule' failed to satisfy constraint}}
  %o = attn.forward %q, %q, %q {schedule = "flash"} : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
}

// -----

func.func @f(%q: tensor<1x1x8x8xf32>) {
  // expected-error @below {{expects the name of a precision, but got 'bf16x3'}}
  // expected-note @below {{precisions: tf32x3, tf32}}
  %o = attn.forward %q, %q, %q precision(bf16x3) : tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32> -> tensor<1x1x8x8xf32>
}

// -----

func.func @f(%q: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expects the name of a precision, but got 'f8_qk', which attn-plan prices and no kernel has}}
  // expected-note @below {{precisions: tf32x3, tf32}}
  %o = attn.forward %q, %q, %q precision(f8_qk) : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
}
