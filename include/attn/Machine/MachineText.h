//===- MachineText.h - A machine as people write it -------------*- C++ -*-===//
///
/// The name of a row, and facts that are otherwise than there:
///
///   h100_sxm
///   h100_sxm, smem_bytes_per_block = 49152, sms = 64
///
/// This is what stands in `#attn.machine<...>`, what the option `machine` of
/// the passes takes, and what the C interface and Python do.  Numbers are
/// decimal, without an exponent.
//===----------------------------------------------------------------------===//

#ifndef ATTN_MACHINE_MACHINETEXT_H
#define ATTN_MACHINE_MACHINETEXT_H

#include "attn/Machine/Machine.h"

namespace attn {

/// The machine of a text.  On failure returns nothing and sets `error` to a
/// sentence that says at which character.
std::optional<Machine> parseMachine(std::string_view text, std::string &error);

} // namespace attn

#endif // ATTN_MACHINE_MACHINETEXT_H
