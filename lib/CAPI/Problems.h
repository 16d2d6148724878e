//===- Problems.h - Problems in the words of the C interface ----*- C++ -*-===//

#ifndef ATTN_LIB_CAPI_PROBLEMS_H
#define ATTN_LIB_CAPI_PROBLEMS_H

#include "attn-c/Attn.h"
#include "attn/CAPI/ProblemText.h"

namespace attn {

/// Reads a type or mask by its name; says which names there are.
std::optional<std::string> readDataType(const char *text, DataType &type);
std::optional<std::string> readPrecision(const char *text, DataType type,
                                         Precision &precision);
/// Of k and v, nothing if it is that of q.
std::optional<std::string> readKvType(const char *text, DataType type,
                                      std::optional<DataType> &ofKeys);
std::optional<std::string> readMask(const char *text, Mask &mask);

/// The problem of the caller, whose sizes are not checked here.
std::optional<std::string> readProblem(const attn_problem &source,
                                       KernelClass &kernelClass);

} // namespace attn

#endif
