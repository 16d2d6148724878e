//===- RandomUnion.h - Random regions that show unions of bands -*- C++ -*-===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_RANDOMUNION_H
#define ATTN_TEST_UNIT_INTERPRETER_RANDOMUNION_H

#include "Harness/Draws.h"

#include <string>

namespace attn {

/// The text of a region of `sees` with up to three bands, for about so many
/// keys, of which some may be in part; they may overlap, or be empty.
std::string drawUnion(Draws &draw, int64_t keys);

} // namespace attn

#endif
