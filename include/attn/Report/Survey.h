//===- Survey.h - One problem, many machines and types ----------*- C++ -*-===//
//
// What each machine makes of a problem in each type: the plan that would be
// built, how far its bytes are from the lower bounds, which fact of the machine
// limits it and what twice as much would buy (Schedule/Sensitivity.h), and what
// its transfers take (Schedule/Energy.h).
//
// A cell is one machine and one type.  Where there is no plan it says why, and
// the survey goes on.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_REPORT_SURVEY_H
#define ATTN_REPORT_SURVEY_H

#include "attn/Report/Report.h"
#include "attn/Schedule/Energy.h"
#include "attn/Schedule/Sensitivity.h"

namespace attn {

struct SurveyCell {
  Machine machine;
  Problem problem;    ///< as asked, in the cell's type
  std::string whyNot; ///< why there is no plan; empty if there is one
  Plan plan;
  Regime regime = Regime::largeCache;
  Bytes lowerBounds;
  std::string timesOf; ///< as in PlanReport
  std::vector<Gain> gains;
  std::optional<Exponent> exponent;

  bool hasPlan() const { return whyNot.empty(); }
  Energy energy() const { return energyOf(plan.bytes); }
};

/// Prices the problem, and again on machines with twice as much.
SurveyCell surveyCell(const Problem &problem, const Machine &machine);

/// Two tables that fit a terminal; or one, with everything.
void renderSurvey(llvm::raw_ostream &out, const std::vector<SurveyCell> &cells,
                  TableForm form);
/// docs/reference/survey.schema.json describes it.
void renderSurveyJson(llvm::raw_ostream &out,
                      const std::vector<SurveyCell> &cells);
/// A file: time, bytes and words for each cell.
std::string surveySvg(const std::vector<SurveyCell> &cells);

/// `12.3 mJ`.
std::string joulesText(double joules);

} // namespace attn

#endif // ATTN_REPORT_SURVEY_H
