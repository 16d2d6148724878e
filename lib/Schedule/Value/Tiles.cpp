//===- Tiles.cpp - Names and values, printed and read ---------------------===//

#include "attn/Schedule/Tiles.h"
#include <cctype>
#include <charconv>

using namespace attn;

int64_t Tiles::get(std::string_view name, int64_t otherwise) const {
  for (const Item &item : items)
    if (item.first == name)
      return item.second;
  return otherwise;
}

bool Tiles::has(std::string_view name) const {
  for (const Item &item : items)
    if (item.first == name)
      return true;
  return false;
}

void Tiles::set(std::string_view name, int64_t value) {
  for (Item &item : items)
    if (item.first == name) {
      item.second = value;
      return;
    }
  items.emplace_back(name, value);
}

std::string Tiles::str() const {
  std::string text;
  for (const Item &item : items)
    text += (text.empty() ? "" : ", ") + item.first + " = " +
            std::to_string(item.second);
  return text;
}

static std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text[0])))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

std::optional<Tiles> attn::parseTiles(std::string_view text,
                                      std::string &error) {
  Tiles tiles;
  for (text = trim(text); !text.empty();) {
    size_t comma = text.find(',');
    std::string_view item = trim(text.substr(0, comma));
    text = comma == text.npos ? "" : trim(text.substr(comma + 1));

    size_t equals = item.find('=');
    std::string_view name = trim(item.substr(0, equals));
    std::string_view digits =
        equals == item.npos ? "" : trim(item.substr(equals + 1));
    int64_t value = 0;
    auto [next, status] = std::from_chars(digits.begin(), digits.end(), value);
    if (name.empty() || status != std::errc() || next != digits.end()) {
      error = "expects tiles as 'name = value, ...', but got '" +
              std::string(item) + "'";
      return std::nullopt;
    }
    if (tiles.has(name)) {
      error =
          "expects every tile once, but got '" + std::string(name) + "' twice";
      return std::nullopt;
    }
    tiles.set(name, value);
  }
  return tiles;
}
