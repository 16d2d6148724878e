//===- Pictures.cpp - attn-plan's pictures --------------------------------===//

#include "Pictures.h"
#include "Format.h"

#include "attn/Report/Pictures.h"

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

std::optional<std::string> attn::drawPictures(const PictureOptions &options,
                                              const PlanReport &report) {
  const Plan *plan = chosen(report);
  if (!plan)
    return std::nullopt; // the caller says what would fit
  std::pair<const cl::opt<std::string> &, decltype(&diagramSvg)> all[] = {
      {options.diagram, diagramSvg}, {options.timeline, timelineSvg}};
  for (auto [file, draw] : all)
    if (file.getNumOccurrences())
      if (auto sentence = writeAnswer(
              file.getValue(), [&, draw = draw](llvm::raw_ostream &out) {
                out << draw(report, *plan);
              }))
        return sentence;
  return std::nullopt;
}
