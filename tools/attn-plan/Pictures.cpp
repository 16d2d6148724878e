//===- Pictures.cpp - attn-plan's pictures --------------------------------===//

#include "Pictures.h"
#include "Format.h"

#include "attn/Report/Page.h"
#include "attn/Report/Pictures.h"
#include <functional>

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
               cl::cat(category)),
      report("report", cl::ValueOptional, cl::value_desc("file.html"),
             cl::desc("Write all that is known of the choice as one page of "
                      "HTML (without a file: to the standard output)"),
             cl::cat(category)) {}

bool PictureOptions::any() const {
  return diagram.getNumOccurrences() + timeline.getNumOccurrences() +
             report.getNumOccurrences() >
         0;
}

int PictureOptions::withoutFile() const {
  int count = 0;
  for (const cl::opt<std::string> *one : {&diagram, &timeline, &report})
    count += one->getNumOccurrences() && one->getValue().empty();
  return count;
}

std::optional<std::string> attn::drawPictures(const PictureOptions &options,
                                              const Packing &packing,
                                              const PlanReport &report) {
  const Plan *plan = chosen(report);
  if (!plan)
    return std::nullopt; // the caller says what would fit
  using Print = std::function<void(llvm::raw_ostream &)>;
  std::pair<const cl::opt<std::string> &, Print> all[] = {
      {options.diagram,
       [&](llvm::raw_ostream &out) { out << diagramSvg(report, *plan); }},
      {options.timeline,
       [&](llvm::raw_ostream &out) { out << timelineSvg(report, *plan); }},
      {options.report,
       [&](llvm::raw_ostream &out) { renderPage(out, packing, report); }}};
  for (const auto &[file, print] : all)
    if (file.getNumOccurrences())
      if (auto sentence = writeAnswer(file.getValue(), print))
        return sentence;
  return std::nullopt;
}
