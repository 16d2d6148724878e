//===- Pictures.cpp - attn-plan's pictures --------------------------------===//

#include "Pictures.h"

#include "attn/Report/Pictures.h"
#include "attn/Report/Report.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/raw_ostream.h"

using namespace attn;
namespace cl = llvm::cl;

PictureOptions::PictureOptions(cl::OptionCategory &category)
    : diagram("diagram", cl::ValueOptional, cl::value_desc("file.svg"),
              cl::desc("Draw the schedule: what stays, streams and is spilled "
                       "(without a file: to the standard output)"),
              cl::cat(category)),
      timeline("timeline", cl::ValueOptional, cl::value_desc("file.svg"),
               cl::desc("Draw the first steps of a tile, unit by unit, by the "
                        "model (without a file: to the standard output)"),
               cl::cat(category)) {}

bool PictureOptions::any() const {
  return diagram.getNumOccurrences() + timeline.getNumOccurrences() > 0;
}

/// The file is there as a whole or as it was before.
static std::optional<std::string> write(llvm::StringRef file,
                                        llvm::StringRef picture) {
  if (file.empty()) {
    llvm::outs() << picture;
    return std::nullopt;
  }
  llvm::Error error = llvm::writeToOutput(file, [&](llvm::raw_ostream &out) {
    out << picture;
    return llvm::Error::success();
  });
  if (!error)
    return std::nullopt;
  return "expects a file that can be written, but got '" + file.str() +
         "': " + llvm::toString(std::move(error));
}

std::optional<std::string> attn::drawPictures(const PictureOptions &options,
                                              const PlanReport &report) {
  const Plan *plan = chosen(report);
  if (!plan)
    return std::nullopt; // the caller says what would fit
  std::pair<const cl::opt<std::string> &, decltype(&diagramSvg)> all[] = {
      {options.diagram, diagramSvg}, {options.timeline, timelineSvg}};
  for (auto [file, draw] : all)
    if (file.getNumOccurrences())
      if (auto sentence = write(file.getValue(), draw(report, *plan)))
        return sentence;
  return std::nullopt;
}
