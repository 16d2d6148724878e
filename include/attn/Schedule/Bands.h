//===- Bands.h - Unions of bands, as regions show them ----------*- C++ -*-===//
///
/// A region may show a union of bands that no mask names: the first keys and a
/// window, say.  What a tile of rows sees of each band is one run of columns,
/// so what it sees in all is a few runs, which follow from its rows; what lies
/// between them is hidden.  No list of them is in memory.
///
///   j < 4, and i - 2 <= j <= i        rows 8, 9 see columns 0 .. 3 and 6 .. 9
///
/// Of a band that is not *whole* the region hides pairs, too: tiles of it are
/// never open.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_BANDS_H
#define ATTN_SCHEDULE_BANDS_H

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace attn {

struct Problem;
struct Span;
struct Visits;
struct BandsData;

/// A number that counts with the rows there are:
/// constant + ofQueries * queries + ofKeys * keys.
struct RowBound {
  int64_t constant = 0, ofQueries = 0, ofKeys = 0;

  int64_t at(int64_t queries, int64_t keys) const {
    return constant + ofQueries * queries + ofKeys * keys;
  }
  bool operator==(const RowBound &other) const;
};
/// What kernels compute in 32 bits: factors of 1 at most, not both of one sign,
/// and beside a factor a constant of at most so much.
inline constexpr int64_t kMostBesideRows = int64_t(1) << 28;
bool fits(const RowBound &bound);

/// The ends of a band, all of which belong to it: of key - query, of keys and
/// of queries.
enum class BandSide {
  firstDiagonal,
  lastDiagonal,
  firstKey,
  lastKey,
  firstQuery,
  lastQuery
};
inline constexpr size_t kBandSides = 6;

struct Band {
  std::array<std::optional<RowBound>, kBandSides> sides;
  bool isWhole = true;

  const std::optional<RowBound> &at(BandSide side) const {
    return sides[size_t(side)];
  }
  std::optional<RowBound> &at(BandSide side) { return sides[size_t(side)]; }
  bool operator==(const Band &other) const;
};

/// More are not walked as runs.
inline constexpr size_t kMostBands = 4;
/// What tiles see is counted tile by tile, so there is a limit to rows.
inline constexpr int64_t kMostRowsOfBands = int64_t(1) << 20;

/// A value; none if it is empty.  Copies share what has been counted.
class Bands {
public:
  Bands() = default;
  explicit Bands(std::vector<Band> bands);

  bool isEmpty() const { return all().empty(); }
  const std::vector<Band> &all() const;
  bool operator==(const Bands &other) const { return all() == other.all(); }

  const BandsData &shared() const { return *data; }

private:
  std::shared_ptr<const BandsData> data;
};

/// `2 bands`, `3 bands, 1 of them in part`.
std::string str(const Bands &bands);

/// As a kernel keeps them (`ProblemAttr`): the numbers of each band, and back.
std::vector<int64_t> numbersOf(const Bands &bands);
std::optional<Bands> bandsOf(const std::vector<int64_t> &numbers);

/// Whether a row sees a column, and the runs of columns, in order and apart,
/// that some of the rows see; those that one band shows to every row.  Rows are
/// queries.
bool sees(const Problem &problem, int64_t row, int64_t column);
std::vector<Span> runsOf(const Problem &problem, Span rows);
std::vector<Span> openRunsOf(const Problem &problem, Span rows);

/// Of the tiles of so many queries x keys that some pair is visible in, the
/// share of those that are not open.
double cutShareOfBands(const Problem &problem, int64_t query, int64_t key);

} // namespace attn

#endif // ATTN_SCHEDULE_BANDS_H
