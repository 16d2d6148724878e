// One function per way to break a numbered constraint of merges; the number is
// in the function's name.
// RUN: attn-opt %s -split-input-file -verify-diagnostics

!o = tensor<1x2x4x8xbf16>
!l = tensor<1x2x4xf32>
func.func @merge_c1(%o: !o, %l: memref<1x2x4xf32>) {
  // expected-error @below {{expects operands to be all tensors or all memrefs, but got 'tensor<1x2x4x8xbf16>' and 'memref<1x2x4xf32>'}}
  %0 = attn.merge (%o, %l) : (!o, memref<1x2x4xf32>) -> !o
  return
}

// -----

!o = tensor<1x2x4x8xbf16>
!l = tensor<1x2x4xf32>
func.func @merge_c2(%o: !o, %l: !l) {
  // expected-error @below {{expects an LSE for each part, but got 1 parts and 2 LSEs}}
  %0 = "attn.merge"(%o, %l, %l) <{operandSegmentSizes = array<i32: 1, 2, 0>}> : (!o, !l, !l) -> !o
  return
}

// -----

!o = memref<1x2x4x8xbf16>
func.func @merge_c2(%o: !o) {
  // expected-error @below {{expects a part at least, but got none}}
  "attn.merge"(%o) <{operandSegmentSizes = array<i32: 0, 0, 1>}> : (!o) -> ()
  return
}

// -----

!o = tensor<1x2x4x8xbf16>
!l = tensor<1x2x4xf32>
func.func @merge_c3(%o: !o, %l: !l) {
  // expected-error @below {{expects one or two results, o and lse, but got 3}}
  %0:3 = attn.merge (%o, %l) : (!o, !l) -> !o, !l, !l
  return
}

// -----

!o = tensor<1x2x4x8xbf16>
!l = tensor<1x2x4xf32>
func.func @merge_c3(%o: !o, %l: !l) {
  // expected-error @below {{expects outs to be absent or of the types of the results, but got}}
  %0 = attn.merge (%o, %l) outs(%o, %l : !o, !l) : (!o, !l) -> !o
  return
}

// -----

!o = memref<1x2x4x8xbf16>
!l = memref<1x2x4xf32>
func.func @merge_c3(%o: !o, %l: !l) {
  // expected-error @below {{expects one or two outs, o and lse, but got 0}}
  attn.merge (%o, %l) : (!o, !l)
  return
}

// -----

!o = tensor<1x2x4x8xbf16>
!l = tensor<1x2x4xf32>
func.func @merge_backward_c3(%o: !o, %l: !l) {
  // expected-error @below {{expects two results, do_0 and dlse_0, but got 1}}
  %0 = attn.merge_backward %o, %o, %l, %o, %l : !o, !o, !l, !o, !l -> !o
  return
}

// -----

!o = tensor<1x2x4x8xbf16>
!l = tensor<1x2x4xf32>
func.func @merge_c4(%o: !o, %l: !l) {
  // expected-error @below {{expects lse_1 of rank 3, but got rank 4}}
  %0 = attn.merge (%o, %l), (%o, %o) : (!o, !l), (!o, !o) -> !o
  return
}

// -----

!o = tensor<1x2x4x8xbf16>
!l = tensor<1x2x4xf32>
func.func @merge_backward_c4(%o: !o, %l: !l) {
  // expected-error @below {{expects do of rank 4, but got rank 3}}
  %0:2 = attn.merge_backward %l, %o, %l, %o, %l : !l, !o, !l, !o, !l -> !o, !l
  return
}

// -----

!o = memref<1x2x4x8xbf16>
!wrong = memref<1x2x4x8xbf16, strided<[128, 64, 16, 2]>>
!l = memref<1x2x4xf32>
func.func @merge_c5(%part: !wrong, %l: !l, %o: !o) {
  // expected-error @below {{expects o_0 to have an innermost stride of 1, but got}}
  attn.merge (%part, %l) outs(%o : !o) : (!wrong, !l)
  return
}

// -----

!o = memref<1x2x4x8xbf16>
!wrong = memref<1x2x4x8xbf16, 3>
!l = memref<1x2x4xf32>
func.func @merge_c5(%part: !o, %l: !l, %o: !wrong) {
  // expected-error @below {{expects o in global memory, but got memory space 3}}
  // expected-note @below {{memory spaces: none, 0, 1, #gpu.address_space<global>}}
  attn.merge (%part, %l) outs(%o : !wrong) : (!o, !l)
  return
}

// -----

!o = memref<1x2x4x8xbf16>
!wrong = memref<1x2x4xf32, strided<[8, 4, 2]>>
!l = memref<1x2x4xf32>
func.func @merge_backward_c5(%o: !o, %l: !l, %wrong: !wrong, %do0: !o, %dl0: !l) {
  // expected-error @below {{expects dlse to have an innermost stride of 1, but got}}
  attn.merge_backward %o, %o, %l, %o, %l dlse(%wrong : !wrong) outs(%do0, %dl0 : !o, !l) : !o, !o, !l, !o, !l
  return
}

// -----

!o = tensor<1x2x4x8xf8E4M3FN>
!l = tensor<1x2x4xf32>
func.func @merge_c6(%o: !o, %l: !l) {
  // expected-error @below {{expects a supported element type, but got 'f8E4M3FN'}}
  // expected-note @below {{element types: bf16, f16, f32}}
  %0 = attn.merge (%o, %l) : (!o, !l) -> !o
  return
}

// -----

!o = tensor<1x2x4x8xbf16>
!h = tensor<1x2x4x8xf16>
!l = tensor<1x2x4xf32>
func.func @merge_c6(%o: !o, %h: !h, %l: !l) {
  // expected-error @below {{expects o_1 to have the element type bf16 of o or f32, but got 'f16'}}
  %0 = attn.merge (%o, %l), (%h, %l) : (!o, !l), (!h, !l) -> !o
  return
}

// -----

!o = tensor<1x2x4x8xf32>
!h = tensor<1x2x4x8xf8E4M3FN>
!l = tensor<1x2x4xf32>
func.func @merge_c6(%h: !h, %l: !l) {
  // expected-error @below {{expects o_0 to have the element type bf16, f16 or f32, but got 'f8E4M3FN'}}
  %0 = attn.merge (%h, %l) : (!h, !l) -> !o
  return
}

// -----

!o = tensor<1x2x4x8xbf16>
!l = tensor<1x2x4xbf16>
func.func @merge_c6(%o: !o, %l: !l) {
  // expected-error @below {{expects lse_0 to have the element type f32, but got 'bf16'}}
  %0 = attn.merge (%o, %l) : (!o, !l) -> !o
  return
}

// -----

!o = tensor<1x2x4x8xbf16>
!f = tensor<1x2x4x8xf32>
!l = tensor<1x2x4xf32>
func.func @merge_backward_c6(%o: !o, %f: !f, %l: !l) {
  // expected-error @below {{expects do_0 to have the element type of o_0, 'f32', but got 'bf16'}}
  %0:2 = attn.merge_backward %o, %o, %l, %f, %l : !o, !o, !l, !f, !l -> !o, !l
  return
}

// -----

!o = tensor<1x2x4x8xbf16>
!f = tensor<1x2x4x8xf32>
!l = tensor<1x2x4xf32>
func.func @merge_backward_c6(%o: !o, %f: !f, %l: !l) {
  // expected-error @below {{expects do to have the element type bf16 of o, but got 'f32'}}
  %0:2 = attn.merge_backward %f, %o, %l, %o, %l : !f, !o, !l, !o, !l -> !o, !l
  return
}

// -----

// A dynamic size in between hides no difference.
!l = tensor<1x2x4xf32>
!d = tensor<1x2x?xf32>
func.func @merge_c7(%a: tensor<1x2x4x8xbf16>, %b: tensor<1x2x?x8xbf16>, %c: tensor<1x2x5x8xbf16>, %l: !l, %d: !d) {
  // expected-error @below {{expects o_2 of shape 1x2x4x8, but got 1x2x5x8}}
  %0 = attn.merge (%a, %l), (%b, %d), (%c, %d) : (tensor<1x2x4x8xbf16>, !l), (tensor<1x2x?x8xbf16>, !d), (tensor<1x2x5x8xbf16>, !d) -> tensor<1x2x?x8xbf16>
  return
}

// -----

!o = tensor<1x?x4x8xbf16>
!l = tensor<1x2x4xf32>
func.func @merge_c7(%o: !o, %l: !l) {
  // expected-error @below {{expects o_0 to have a static and positive head count, but got ?}}
  %0 = attn.merge (%o, %l) : (!o, !l) -> !o
  return
}

// -----

!o = tensor<1x2x4x0xbf16>
!l = tensor<1x2x4xf32>
func.func @merge_backward_c7(%o: !o, %l: !l) {
  // expected-error @below {{expects do to have a static and positive head dimension, but got 0}}
  %0:2 = attn.merge_backward %o, %o, %l, %o, %l : !o, !o, !l, !o, !l -> !o, !l
  return
}

// -----

!o = tensor<1x2x1073741824x8xbf16>
!l = tensor<1x2x1073741824xf32>
func.func @merge_c8(%o: !o, %l: !l) {
  // expected-error @below {{expects queries between 0 and 1073741823, but got 1073741824}}
  %0 = attn.merge (%o, %l) : (!o, !l) -> !o
  return
}

// -----

!o = tensor<1x2x4x65537xbf16>
!l = tensor<1x2x4xf32>
func.func @merge_backward_c8(%o: !o, %l: !l) {
  // expected-error @below {{between 1 and 65536, but got 65537}}
  %0:2 = attn.merge_backward %o, %o, %l, %o, %l : !o, !o, !l, !o, !l -> !o, !l
  return
}

// -----

!o = memref<1x2x4x8xbf16>
!l = memref<1x2x4xf32>
func.func @merge_c9(%o: !o, %l: !l, %p: !o) {
  // expected-error @below {{expects outs in buffers of their own, but got that of o_0}}
  attn.merge (%o, %l), (%p, %l) outs(%o : !o) : (!o, !l), (!o, !l)
  return
}

// -----

!o = memref<1x2x4x8xbf16>
!l = memref<1x2x4xf32>
func.func @merge_backward_c9(%o: !o, %l: !l, %do0: !o) {
  // expected-error @below {{expects outs in buffers of their own, but got that of lse}}
  attn.merge_backward %o, %o, %l, %o, %l outs(%do0, %l : !o, !l) : !o, !o, !l, !o, !l
  return
}

// -----

!o = tensor<1x2x4x8xbf16>
!f = tensor<1x2x4x8xf32>
!l = tensor<1x2x4xf32>
func.func @merge_c10(%o: !o, %f: !f, %l: !l) {
  // expected-error @below {{expects an alignment}}
  %0 = attn.merge (%o, %l), (%f, %l) {alignment = 2} : (!o, !l), (!f, !l) -> !o
  return
}

// -----

!o = tensor<1x2x4x8xbf16>
!l = tensor<1x2x4xf32>
func.func @merge_backward_c10(%o: !o, %l: !l) {
  // expected-error @below {{expects an alignment}}
  %0:2 = attn.merge_backward %o, %o, %l, %o, %l {alignment = 32} : !o, !o, !l, !o, !l -> !o, !l
  return
}

// -----

!o = tensor<1x2x4x8xbf16>
!l = memref<1x2x4xf32>
func.func @merge_backward_c1(%o: !o, %l: !l) {
  // expected-error @below {{expects operands to be all tensors or all memrefs, but got 'tensor<1x2x4x8xbf16>' and 'memref<1x2x4xf32>'}}
  %0:2 = attn.merge_backward %o, %o, %l, %o, %l : !o, !o, !l, !o, !l -> !o, !o
  return
}
