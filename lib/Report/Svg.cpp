//===- Svg.cpp - Shapes and words as SVG ----------------------------------===//

#include "Svg.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>

using namespace attn;
using llvm::StringRef;

/// Of a letter, tenths of a pixel: 0.61 of the size of the font.
static constexpr int64_t kLetterTenths = 73;
static constexpr const char *kFont =
    "ui-monospace, Menlo, Consolas, &quot;DejaVu Sans Mono&quot;, monospace";
static constexpr int64_t kFontSize = 12;

int64_t attn::textWidth(StringRef words) {
  auto beginsLetter = [](char c) { return (c & 0xc0) != 0x80; };
  int64_t letters = std::count_if(words.begin(), words.end(), beginsLetter);
  return (letters * kLetterTenths + 9) / 10;
}

std::string attn::grouped(int64_t number) {
  std::string text = std::to_string(number);
  for (size_t end = text.size(), first = number<0; end> first + 3; end -= 3)
    text.insert(end - 3, ",");
  return text;
}

static std::string escaped(StringRef words) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::printHTMLEscaped(words, stream);
  return text;
}

static std::string strokeOf(const Look &look) {
  std::string text = std::string("stroke=\"") + look.stroke + "\"";
  if (look.strokeWidth != 1)
    text += " stroke-width=\"" + std::to_string(look.strokeWidth) + "\"";
  return text + (look.isDashed ? " stroke-dasharray=\"5 3\"" : "");
}

void Svg::begin(StringRef kind, const llvm::Twine &title,
                const llvm::Twine &attributes) {
  llvm::raw_string_ostream(body)
      << "<g class=\"" << kind << "\"" << attributes << "><title>"
      << escaped(title.str()) << "</title>\n";
}

void Svg::end() { body += "</g>\n"; }

void Svg::box(const Rectangle &box, const Look &look) {
  llvm::raw_string_ostream out(body);
  out << "<rect x=\"" << box.x << "\" y=\"" << box.y << "\" width=\""
      << box.width << "\" height=\"" << box.height << '"';
  if (look.radius)
    out << " rx=\"" << look.radius << '"';
  out << " fill=\"" << look.fill << "\" " << strokeOf(look) << "/>\n";
}

void Svg::line(int64_t x0, int64_t y0, int64_t x1, int64_t y1,
               const Look &look) {
  llvm::raw_string_ostream(body)
      << "<line x1=\"" << x0 << "\" y1=\"" << y0 << "\" x2=\"" << x1
      << "\" y2=\"" << y1 << "\" " << strokeOf(look) << "/>\n";
}

void Svg::arrow(int64_t x, int64_t from, int64_t to, const Look &look) {
  int64_t half = look.strokeWidth / 2 + 3, length = half + 2;
  int64_t neck = from < to ? to - length : to + length;
  line(x, from, x, neck, look);
  llvm::raw_string_ostream(body)
      << "<polygon points=\"" << x - half << ',' << neck << ' ' << x + half
      << ',' << neck << ' ' << x << ',' << to << "\" fill=\"" << look.stroke
      << "\"/>\n";
}

void Svg::words(int64_t x, int64_t y, StringRef words, const char *colour,
                const char *more) {
  llvm::raw_string_ostream(body)
      << "<text x=\"" << x << "\" y=\"" << y + kFontSize << "\" fill=\""
      << colour << '"' << more << '>' << escaped(words) << "</text>\n";
}

void Svg::text(int64_t x, int64_t y, StringRef words, const char *colour,
               bool isBold) {
  this->words(x, y, words, colour, isBold ? " font-weight=\"bold\"" : "");
}

void Svg::textBefore(int64_t x, int64_t y, StringRef words,
                     const char *colour) {
  this->words(x, y, words, colour, " text-anchor=\"end\"");
}

std::string Svg::file(int64_t width, int64_t height, StringRef title) const {
  std::string text;
  llvm::raw_string_ostream(text)
      << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width
      << "\" height=\"" << height << "\" viewBox=\"0 0 " << width << ' '
      << height << "\" role=\"img\" font-family=\"" << kFont
      << "\" font-size=\"" << kFontSize << "\">\n<title>" << escaped(title)
      << "</title>\n<rect x=\"0\" y=\"0\" width=\"" << width << "\" height=\""
      << height << "\" fill=\"" << kPaper << "\"/>\n"
      << body << "</svg>\n";
  return text;
}

void Sheet::text(int64_t x, int64_t y, const std::string &words,
                 const char *colour, bool isBold) {
  svg.text(x, y, words, colour, isBold);
  width = std::max(width, x + textWidth(words));
}

void Sheet::line(const std::string &words, bool isBold) {
  text(kEdge, y, words, isBold ? Svg::kInk : Svg::kFaint, isBold);
  y += kLineHeight;
}
