// attn-opt -attn-to-binary=format=isa
// error: expected
module {
  module {
}
