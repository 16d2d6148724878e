//===- Compare.cpp - Why one plan lost to another -------------------------===//

#include "attn/Schedule/Plan.h"
#include <cstdio>

using namespace attn;

namespace {
/// A term of the time that explains a difference, in the words of a sentence.
/// A resource counts only where it binds; the others always add up.
struct Term {
  double Time::*seconds;
  const char *resource;
  const char *what;
};
} // namespace

static const Term terms[] = {
    {&Time::hbm, "hbm", "device memory traffic"},
    {&Time::l2, "l2", "L2 traffic"},
    {&Time::smem, "smem", "shared memory traffic"},
    {&Time::tensor, "tensor", "matrix arithmetic"},
    {&Time::tensor, "fma", "matrix arithmetic"},
    {&Time::exp, "exp", "the exp unit"},
    {&Time::issue, "issue", "instruction issue"},
    {&Time::exposed, nullptr, "waiting that no other warp hides"},
    {&Time::contention, nullptr, "contention between memory levels"},
    {&Time::tail, nullptr, "a short last wave"},
    {&Time::overhead, nullptr, "launch and first load"},
};

static std::string format(const char *form, double value) {
  char text[64];
  std::snprintf(text, sizeof text, form, value);
  return text;
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
  auto growth = [&](const Term &term) {
    return loser.time.*term.seconds - winner.time.*term.seconds;
  };
  const Term *most = nullptr;
  for (const Term &term : terms) {
    bool counts = !term.resource || loser.boundBy == term.resource;
    if (counts && (!most || growth(term) > growth(*most)))
      most = &term;
  }
  return format("%.1f %% slower: ", percent) + most->what +
         format(" takes %.1f us", loser.time.*most->seconds * 1e6) +
         format(" instead of %.1f us", winner.time.*most->seconds * 1e6);
}
