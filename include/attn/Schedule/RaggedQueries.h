//===- RaggedQueries.h - Ragged queries on a cache of keys ------*- C++ -*-===//
///
/// What a server calls at once: sequences with thousands of new rows beside
/// those with one, all of them behind a cache.  Queries lie one behind the
/// other (Ragged.h), and where the device says how many keys each batch entry
/// uses (`Placement`) sequence n has the used keys of entry n: `keys` is the
/// most that one may have, in order or in pages, and there are no offsets of
/// keys.
///
/// The host knows the tokens T, the sequences B and the longest, L.  On a cache
/// every sequence has a query, mostly: n of them have L, and the others one, so
/// that n L + B - n = T.  Planned are these, each with all the keys that it may
/// have.
///
/// Example: 4216 queries of 128 sequences, of at most 512 each: 8 prefills and
/// 120 decoding steps.  Prefills decide how long it takes to multiply, and
/// decoding steps how many bytes of keys there are to read.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_RAGGEDQUERIES_H
#define ATTN_SCHEDULE_RAGGEDQUERIES_H

#include "attn/Schedule/Problem.h"
#include "attn/Schedule/Roles.h"

#include <optional>
#include <vector>

namespace attn {

/// Whether keys lie one behind the other too, and not in a cache.
bool areKeysRagged(const Problem &problem);

/// Whether the rows of an array are those of sequences one behind the other.
bool isOfSequences(Role role, const Problem &problem);

/// The sequences of a problem on a cache whose lengths are not known.
std::vector<Sequences> sequencesOfCache(const Problem &problem,
                                        const Lengths &longest);

/// Whether a sequence has one query beside others that have more.
bool isBesideLonger(const Lengths &lengths, const Lengths &longest);

/// Sequences one by one, as a stand-in remembers them: none if there are more
/// than so many, and then the longest stand for all.
inline constexpr int64_t kMostListed = 4096;
std::vector<Lengths> listed(const std::vector<Sequences> &all);

/// Of a stand-in (Ragged.h) for queries on a cache, what it does not stand for:
/// sequences of one query, as many as read as many keys, as a dense problem.
std::optional<Problem> ofOneQuery(const Problem &standIn);

} // namespace attn

#endif // ATTN_SCHEDULE_RAGGEDQUERIES_H
