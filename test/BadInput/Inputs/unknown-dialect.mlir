// attn-opt -attn-to-binary=format=isa
// error: flash
flash.attention
