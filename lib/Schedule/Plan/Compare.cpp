//===- Compare.cpp - Why one plan lost to another -------------------------===//

#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Time.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace attn;

/// The longest resource: a memory level, if it takes longer than all that the
/// multiprocessors do, or else the busiest of their units.
static double busiest(const Time &t) {
  double memory = std::max(t.hbm, t.l2);
  double unit = std::max({t.smem, t.tensor, t.exp, t.issue});
  return memory > unit + t.exposed + t.tail ? memory : unit;
}

static std::string format(const char *form, double value) {
  char text[64];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

/// Two numbers with as many digits behind the point, one or more, as it takes
/// to see that they differ.
static std::pair<std::string, std::string> tellApart(double a, double b) {
  std::pair<std::string, std::string> texts;
  for (const char *form : {"%.1f", "%.2f", "%.3f", "%.4f"}) {
    texts = {format(form, a), format(form, b)};
    if (texts.first != texts.second)
      break;
  }
  return texts;
}

std::string attn::decision(std::string_view schedule, const Tiles &tiles) {
  std::string text(schedule);
  return tiles.empty() ? text : text + ", " + tiles.str();
}

std::string attn::whyLost(const Plan &loser, const Plan &winner) {
  double percent = (loser.seconds / winner.seconds - 1) * 100;
  if (percent < 0.05) {
    int64_t more = loser.footprint.smemBytes - winner.footprint.smemBytes;
    return more > 0 ? "as fast, but needs " + std::to_string(more) +
                          " more bytes of shared memory"
                    : "as fast";
  }
  // Of resources only the longest explains a difference; the rest adds up.
  auto counts = [&](const TimeTerm &term) {
    return !term.isResource || loser.time.*term.seconds == busiest(loser.time);
  };
  auto growth = [&](const TimeTerm &term) {
    return counts(term) ? loser.time.*term.seconds - winner.time.*term.seconds
                        : -HUGE_VAL;
  };
  std::array<TimeTerm, 10> terms = timeTerms(loser.family);
  const TimeTerm *most = std::max_element(
      terms.begin(), terms.end(), [&](const TimeTerm &a, const TimeTerm &b) {
        return growth(a) < growth(b);
      });
  std::string slower = format("%.1f %% slower", percent);
  auto [more, less] = tellApart(loser.time.*most->seconds * 1e6,
                                winner.time.*most->seconds * 1e6);
  if (growth(*most) <= 0 || more == less)
    return slower;
  return slower + ": " + most->what + " takes " + more + " us instead of " +
         less + " us";
}
