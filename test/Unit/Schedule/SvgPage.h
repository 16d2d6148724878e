//===- SvgPage.h - What a picture really has --------------------*- C++ -*-===//
//
// Reads an SVG file back as elements with boxes, knowing nothing of who wrote
// it.  It takes the XML that such files have: no comments, no CDATA, and the
// five entities.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_SVG_PAGE_H
#define ATTN_TEST_SVG_PAGE_H

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace attn {

/// An area of the page, in pixels.
struct Area {
  double left, top, right, bottom;

  bool overlaps(const Area &other) const {
    return left < other.right && other.left < right && top < other.bottom &&
           other.top < bottom;
  }
  bool contains(const Area &other) const {
    return left <= other.left && other.right <= right && top <= other.top &&
           other.bottom <= bottom;
  }
};

struct SvgElement {
  std::string name, text;
  std::map<std::string, std::string> attributes;
  size_t parent;

  bool has(const std::string &key) const { return attributes.count(key) > 0; }
  std::string get(const std::string &key) const {
    auto found = attributes.find(key);
    return found == attributes.end() ? "" : found->second;
  }
  double number(const std::string &key) const {
    return std::strtod(get(key).c_str(), nullptr);
  }
};

class SvgPage {
public:
  explicit SvgPage(const std::string &source) : rest(source) { read(); }

  std::vector<SvgElement> elements;
  std::string error; ///< empty: it is well-formed

  /// Those whose class is this.
  std::vector<const SvgElement *> ofClass(const std::string &kind) const {
    std::vector<const SvgElement *> found;
    for (const SvgElement &element : elements)
      if (element.get("class") == kind)
        found.push_back(&element);
    return found;
  }
  int64_t sum(const std::string &key) const {
    int64_t total = 0;
    for (const SvgElement &element : elements)
      total += std::atoll(element.get(key).c_str());
    return total;
  }
  int64_t most(const std::string &key) const {
    int64_t most = 0;
    for (const SvgElement &element : elements)
      most = std::max<int64_t>(most, std::atoll(element.get(key).c_str()));
    return most;
  }
  /// The first rectangle in an element.
  Area rectangleIn(const SvgElement &element) const {
    for (const SvgElement &child : elements)
      if (child.name == "rect" && &elements[child.parent] == &element)
        return areaOf(child);
    return {};
  }
  Area page() const {
    double x, y, width, height;
    std::istringstream(elements.front().get("viewBox")) >> x >> y >> width >>
        height;
    return {x, y, x + width, y + height};
  }

  /// What shapes and words take; of others nothing.
  Area areaOf(const SvgElement &e) const {
    if (e.name == "rect")
      return {e.number("x"), e.number("y"), e.number("x") + e.number("width"),
              e.number("y") + e.number("height")};
    if (e.name == "line")
      return {std::min(e.number("x1"), e.number("x2")),
              std::min(e.number("y1"), e.number("y2")),
              std::max(e.number("x1"), e.number("x2")),
              std::max(e.number("y1"), e.number("y2"))};
    if (e.name == "polygon")
      return ofPoints(e.get("points"));
    if (e.name == "text")
      return ofWords(e);
    return {};
  }

private:
  std::string rest;
  size_t at = 0;

  static Area ofPoints(std::string points) {
    std::replace(points.begin(), points.end(), ',', ' ');
    std::istringstream stream(points);
    Area area = {1e9, 1e9, -1e9, -1e9};
    for (double x, y; stream >> x >> y;)
      area = {std::min(area.left, x), std::min(area.top, y),
              std::max(area.right, x), std::max(area.bottom, y)};
    return area;
  }

  /// Letters of DejaVu Sans Mono and Menlo are 0.602 of the size wide; none of
  /// the others is wider.
  Area ofWords(const SvgElement &e) const {
    constexpr double size = 12, letter = 0.602 * size;
    double letters =
        double(std::count_if(e.text.begin(), e.text.end(),
                             [](char c) { return (c & 0xc0) != 0x80; }));
    double left = e.number("x"), y = e.number("y");
    if (e.get("text-anchor") == "end")
      left -= letters * letter;
    return {left, y - 0.77 * size, left + letters * letter, y + 0.24 * size};
  }

  bool fail(const std::string &what) {
    error = what + " at byte " + std::to_string(at);
    return false;
  }

  static std::string plain(const std::string &text) {
    static const std::pair<const char *, char> entities[] = {{"&lt;", '<'},
                                                             {"&gt;", '>'},
                                                             {"&quot;", '"'},
                                                             {"&apos;", '\''},
                                                             {"&amp;", '&'}};
    std::string result;
    for (size_t i = 0; i < text.size();) {
      bool isEntity = false;
      for (auto [name, letter] : entities)
        if (text.compare(i, std::string(name).size(), name) == 0) {
          result += letter, i += std::string(name).size(), isEntity = true;
          break;
        }
      if (!isEntity)
        result += text[i++];
    }
    return result;
  }

  bool isWrong(const std::string &text) {
    for (size_t i = 0; i < text.size(); ++i)
      if (text[i] == '&' && plain(text.substr(i, 6)).front() == '&' &&
          text.compare(i, 5, "&amp;") != 0)
        return true;
    return false;
  }

  bool readAttributes(SvgElement &element, const std::string &tag) {
    size_t i = element.name.size();
    while (i < tag.size()) {
      if (std::isspace(static_cast<unsigned char>(tag[i]))) {
        ++i;
        continue;
      }
      size_t equals = tag.find("=\"", i);
      size_t end =
          equals == std::string::npos ? equals : tag.find('"', equals + 2);
      if (end == std::string::npos)
        return fail("expects name=\"value\" in <" + tag + ">");
      std::string key = tag.substr(i, equals - i);
      std::string value = tag.substr(equals + 2, end - equals - 2);
      if (isWrong(value) || value.find('<') != std::string::npos)
        return fail("expects an escaped value, but got " + value);
      if (!element.attributes.emplace(key, plain(value)).second)
        return fail("expects one " + key);
      i = end + 1;
    }
    return true;
  }

  bool read() {
    std::vector<size_t> open;
    while (at < rest.size()) {
      size_t tag = rest.find('<', at);
      std::string words = rest.substr(at, tag - at);
      if (isWrong(words))
        return fail("expects escaped words, but got " + words);
      if (!open.empty())
        elements[open.back()].text += plain(words);
      if (tag == std::string::npos)
        break;
      size_t end = rest.find('>', tag);
      if (end == std::string::npos)
        return fail("expects a >");
      std::string inside = rest.substr(tag + 1, end - tag - 1);
      at = end + 1;
      if (inside[0] == '/') {
        if (open.empty() || elements[open.back()].name != inside.substr(1))
          return fail("expects no </" + inside.substr(1) + ">");
        open.pop_back();
        continue;
      }
      bool isWhole = inside.back() == '/';
      if (isWhole)
        inside.pop_back();
      SvgElement element;
      element.name = inside.substr(0, inside.find(' '));
      element.parent = open.empty() ? elements.size() : open.back();
      if (!readAttributes(element, inside))
        return false;
      elements.push_back(element);
      if (!isWhole)
        open.push_back(elements.size() - 1);
    }
    return open.empty() || fail("expects all elements to end");
  }
};

/// Words lie on no others, and nothing lies beside the page.
inline void checkPlaces(const SvgPage &page) {
  std::vector<std::pair<Area, std::string>> words;
  for (const SvgElement &element : page.elements) {
    Area area = page.areaOf(element);
    EXPECT_TRUE(page.page().contains(area))
        << element.name << " " << element.text << " beside the page";
    if (element.name == "text")
      words.push_back({area, element.text});
  }
  for (size_t i = 0; i < words.size(); ++i)
    for (size_t j = i + 1; j < words.size(); ++j)
      EXPECT_FALSE(words[i].first.overlaps(words[j].first))
          << "'" << words[i].second << "' on '" << words[j].second << "'";
}

} // namespace attn

#endif // ATTN_TEST_SVG_PAGE_H
