//===- MachineName.h - How answers call a machine ---------------*- C++ -*-===//

#ifndef ATTN_LIB_REPORT_MACHINENAME_H
#define ATTN_LIB_REPORT_MACHINENAME_H

#include "attn/Machine/Machine.h"

#include <string>

namespace attn {

/// "h100_sxm", or "h100_sxm with sms = 1" where a fact is not that of the GPU.
std::string nameWithFacts(const Machine &machine);

} // namespace attn

#endif // ATTN_LIB_REPORT_MACHINENAME_H
