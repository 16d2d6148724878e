//===- Svg.h - Shapes and words as SVG --------------------------*- C++ -*-===//
//
// Coordinates are whole pixels, from the upper left corner.  All words are of
// one font whose letters are equally wide.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_REPORT_SVG_H
#define ATTN_LIB_REPORT_SVG_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

#include <cstdint>
#include <string>

namespace attn {

/// Width of a text of the usual size, not less than any such font makes it.
int64_t textWidth(llvm::StringRef words);
/// From the top of a line of text to the top of the next.
inline constexpr int64_t kLineHeight = 16;

struct Rectangle {
  int64_t x, y, width, height;
  int64_t right() const { return x + width; }
  int64_t bottom() const { return y + height; }
};

/// How a shape looks.
struct Look {
  const char *fill, *stroke;
  bool isDashed = false;
  int64_t strokeWidth = 1;
  int64_t radius = 0;
};

class Svg {
public:
  /// Everything between this and `end` has a title and attributes of its own.
  void begin(llvm::StringRef kind, const llvm::Twine &title,
             const llvm::Twine &attributes = "");
  void end();

  void box(const Rectangle &box, const Look &look);
  void line(int64_t x0, int64_t y0, int64_t x1, int64_t y1, const Look &look);
  /// A shaft as wide as its stroke, and a head at its end.
  void arrow(int64_t x, int64_t from, int64_t to, const Look &look);
  /// `y` is the top of the line.
  void text(int64_t x, int64_t y, llvm::StringRef words,
            const char *colour = kInk, bool isBold = false);
  /// It ends at `x`.
  void textBefore(int64_t x, int64_t y, llvm::StringRef words,
                  const char *colour = kInk);

  /// The whole file, on a background of that size.
  std::string file(int64_t width, int64_t height, llvm::StringRef title) const;

  static constexpr const char *kInk = "#1f2328", *kFaint = "#59636e",
                              *kPaper = "#ffffff";

private:
  std::string body;

  void words(int64_t x, int64_t y, llvm::StringRef words, const char *colour,
             const char *more);
};

/// A picture that grows to the right with its words and down with its lines.
class Sheet {
protected:
  static constexpr int64_t kEdge = 12;

  explicit Sheet(int64_t width = 0) : width(width) {}

  void text(int64_t x, int64_t y, const std::string &words,
            const char *colour = Svg::kInk, bool isBold = false);
  /// A line of its own.
  void line(const std::string &words, bool isBold = false);

  Svg svg;
  int64_t width, y = kEdge;
};

/// A number with a comma between thousands.
std::string grouped(int64_t number);

} // namespace attn

#endif // ATTN_LIB_REPORT_SVG_H
