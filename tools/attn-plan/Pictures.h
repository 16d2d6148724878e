//===- Pictures.h - attn-plan's pictures ------------------------*- C++ -*-===//

#ifndef ATTN_TOOLS_PICTURES_H
#define ATTN_TOOLS_PICTURES_H

#include "attn/Schedule/Packing.h"
#include "attn/Schedule/Plan.h"

#include "llvm/Support/CommandLine.h"
#include <optional>
#include <string>

namespace attn {

/// The options that ask for a picture, or for a page with all of them.
struct PictureOptions {
  explicit PictureOptions(llvm::cl::OptionCategory &category);

  llvm::cl::opt<std::string> diagram, timeline, report;

  /// Whether there is one to draw.
  bool any() const;
  /// How many of them go to the standard output.
  int withoutFile() const;
};

/// Draws the chosen plan of a report to the files that options name, or to the
/// standard output; a sentence if that is not possible.
std::optional<std::string> drawPictures(const PictureOptions &options,
                                        const Packing &packing,
                                        const PlanReport &report);

} // namespace attn

#endif // ATTN_TOOLS_PICTURES_H
