//===- Roles.cpp - What the arguments of kernels are ----------------------===//

#include "attn/Schedule/Roles.h"

#include "attn/Schedule/Tensor.h"

#include <algorithm>
#include <cassert>
#include <tuple>

using namespace attn;

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static RoleFacts array(std::string_view name, Flow forward, Flow backward,
                       Element element, std::vector<Extent> shape) {
  return {name, forward, backward, element, Memory::array, std::move(shape)};
}

static RoleFacts arrays(std::string_view name, Flow forward, Flow backward,
                        Element element, std::vector<Extent> shape) {
  RoleFacts facts = array(name, forward, backward, element, std::move(shape));
  facts.isMany = true;
  return facts;
}

static RoleFacts captures(std::string_view name, Flow forward, Flow backward,
                          Element element) {
  RoleFacts facts{name, forward, backward, element, Memory::captured};
  facts.isMany = true;
  return facts;
}

static RoleFacts memory(std::string_view name, Element element, Memory whose,
                        Role of) {
  RoleFacts facts{name, Flow::scratch, Flow::scratch, element, whose};
  facts.of = of;
  return facts;
}

static RoleFacts number(std::string_view name, Element element,
                        int64_t (*value)(const Problem &, const Round &)) {
  RoleFacts facts{name, Flow::in, Flow::in, element};
  facts.value = value;
  return facts;
}

static std::vector<RoleFacts> readTable() {
  constexpr Extent batch = Extent::batch, heads = Extent::heads,
                   kvHeads = Extent::kvHeads, queries = Extent::queries,
                   keys = Extent::keys, headDim = Extent::headDim,
                   headDimV = Extent::headDimV, keptRows = Extent::keptRows,
                   queryBlocks = Extent::queryBlocks,
                   keyBlocks = Extent::keyBlocks, offsets = Extent::offsets,
                   tablePages = Extent::tablePages;
  return {
#define ATTN_ARRAY(role, name, forward, backward, element, ...)                \
  array(name, Flow::forward, Flow::backward, Element::element, {__VA_ARGS__}),
#define ATTN_ARRAYS(role, name, forward, backward, element, ...)               \
  arrays(name, Flow::forward, Flow::backward, Element::element, {__VA_ARGS__}),
#define ATTN_CAPTURES(role, name, forward, backward, element)                  \
  captures(name, Flow::forward, Flow::backward, Element::element),
#define ATTN_MEMORY(role, name, element, whose, of)                            \
  memory(name, Element::element, Memory::whose, Role::of),
#define ATTN_NUMBER(role, name, element, value)                                \
  number(                                                                      \
      name, Element::element,                                                  \
      []([[maybe_unused]] const Problem &problem,                              \
         [[maybe_unused]] const Round &round) -> int64_t { return value; }),
#include "attn/Schedule/Roles.def"
  };
}

static const std::vector<RoleFacts> &table() {
  static const auto *rows = new std::vector<RoleFacts>(readTable());
  return *rows;
}

const RoleFacts &attn::factsOf(Role role) { return table()[size_t(role)]; }

const std::vector<Role> &attn::allRoles() {
  static const auto *roles = new std::vector<Role>{
#define ATTN_ARRAY(role, ...) Role::role,
#define ATTN_ARRAYS(role, ...) Role::role,
#define ATTN_CAPTURES(role, ...) Role::role,
#define ATTN_MEMORY(role, ...) Role::role,
#define ATTN_NUMBER(role, ...) Role::role,
#include "attn/Schedule/Roles.def"
  };
  return *roles;
}

Role attn::memoryOf(Role input, Memory memory) {
  auto isIt = [&](Role role) {
    return factsOf(role).memory == memory && factsOf(role).of == input;
  };
  auto found = std::find_if(allRoles().begin(), allRoles().end(), isIt);
  assert(found != allRoles().end() && "such memory of an input has a row");
  return *found;
}

std::string attn::roleNames() {
  std::string text;
  for (const RoleFacts &facts : table()) {
    text += text.empty() ? "" : ", ";
    text += facts.name;
    text += facts.isMany ? "_<number>" : "";
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Facets and text
//===----------------------------------------------------------------------===//

static std::string_view suffixOf(Facet facet) {
  switch (facet) {
  case Facet::itself:
    return "";
  case Facet::offset:
    return "_offset";
  case Facet::strideBatch:
    return "_stride_batch";
  case Facet::strideHead:
    return "_stride_head";
  case Facet::strideRow:
    return "_stride_row";
  case Facet::map:
    return "_map";
  case Facet::octetMap:
    return "_octet_map";
  case Facet::rowMap:
    return "_row_map";
  case Facet::emptyMap:
    return "_empty_map";
  case Facet::stride0:
    return "_stride_0";
  case Facet::stride1:
    return "_stride_1";
  case Facet::stride2:
    return "_stride_2";
  case Facet::stride3:
    return "_stride_3";
  case Facet::size0:
    return "_size_0";
  case Facet::size1:
    return "_size_1";
  case Facet::size2:
    return "_size_2";
  case Facet::size3:
    return "_size_3";
  }
  return "";
}

bool attn::isMap(Facet facet) {
  return std::find(std::begin(kMaps), std::end(kMaps), facet) !=
         std::end(kMaps);
}

bool attn::hasFacet(Role role, Facet facet) {
  const RoleFacts &facts = factsOf(role);
  if (facet == Facet::itself)
    return true;
  bool isOfAnyShape = facts.memory == Memory::captured;
  if (facet == Facet::offset && isOfAnyShape)
    return true;
  if (facet >= Facet::stride0)
    return isOfAnyShape;
  if (facet == Facet::map)
    return facts.memory == Memory::parts ||
           (facts.memory == Memory::round &&
            facts.element == Element::scores) ||
           (facts.isArray() && facts.shape.size() == 4);
  if (isMap(facet))
    return facts.isArray() && facts.shape.size() == 4;
  return facts.isArray();
}

bool ArgumentRole::operator==(const ArgumentRole &other) const {
  return role == other.role && facet == other.facet && part == other.part;
}

bool ArgumentRole::operator<(const ArgumentRole &other) const {
  return std::tuple(role, part, facet) <
         std::tuple(other.role, other.part, other.facet);
}

std::string attn::str(const ArgumentRole &role) {
  std::string text(role.facts().name);
  if (role.facts().isMany)
    text += "_" + std::to_string(role.part);
  text += suffixOf(role.facet);
  return text;
}

/// The number behind a name, as `str` prints it.
static std::optional<int> partOf(std::string_view text) {
  constexpr size_t mostDigits = 4;
  bool isNumber = !text.empty() && text.size() <= mostDigits &&
                  std::all_of(text.begin(), text.end(),
                              [](char c) { return c >= '0' && c <= '9'; });
  if (!isNumber || (text.size() > 1 && text.front() == '0'))
    return std::nullopt;
  return std::stoi(std::string(text));
}

static bool consumeBack(std::string_view &text, std::string_view suffix) {
  if (text.size() < suffix.size() ||
      text.substr(text.size() - suffix.size()) != suffix)
    return false;
  text.remove_suffix(suffix.size());
  return true;
}

/// The part of a row's role that text without a facet names.
static std::optional<int> partNamed(const RoleFacts &facts,
                                    std::string_view text) {
  if (!facts.isMany)
    return text == facts.name ? std::optional(0) : std::nullopt;
  size_t length = facts.name.size();
  if (text.size() <= length || text.substr(0, length) != facts.name ||
      text[length] != '_')
    return std::nullopt;
  return partOf(text.substr(length + 1));
}

std::optional<ArgumentRole> attn::parseRole(std::string_view text) {
  for (Facet facet : kFacets) {
    std::string_view name = text;
    if (!consumeBack(name, suffixOf(facet)))
      continue;
    for (Role role : allRoles())
      if (std::optional<int> part = partNamed(factsOf(role), name);
          part && hasFacet(role, facet))
        return ArgumentRole(role, facet, *part);
  }
  return std::nullopt;
}

std::optional<Role> attn::findArray(std::string_view name) {
  for (Role role : allRoles()) {
    const RoleFacts &facts = factsOf(role);
    if (facts.isArray() && !facts.isMany && facts.name == name)
      return role;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Sizes and types
//===----------------------------------------------------------------------===//

/// Blocks of so many rows; of any number of them any number.
static int64_t blocksOf(int64_t rows, int64_t size) {
  return rows < 0 ? rows : (rows + size - 1) / size;
}

int64_t attn::valueOf(Extent extent, const Problem &problem) {
  switch (extent) {
  case Extent::batch:
    return problem.batch;
  case Extent::heads:
    return problem.heads;
  case Extent::kvHeads:
    return problem.kvHeads;
  case Extent::queries:
    return problem.queries;
  case Extent::keys:
    return problem.keys;
  case Extent::headDim:
    return problem.headDim;
  case Extent::headDimV:
    return problem.headDimV;
  case Extent::keptRows:
    return problem.keys < 0 ? problem.keys : keptRows(problem.keys);
  case Extent::queryBlocks:
    return problem.pattern
               ? blocksOf(problem.queries, problem.pattern->size().queries)
               : 0;
  case Extent::keyBlocks:
    return problem.pattern
               ? blocksOf(problem.keys, problem.pattern->size().keys)
               : 0;
  case Extent::offsets:
    return problem.batch < 0 ? problem.batch : problem.batch + 1;
  case Extent::tablePages:
    return problem.place.isPaged()
               ? blocksOf(problem.keys, problem.place.pageRows)
               : -1;
  case Extent::pages: // of which a problem may have any number
    return -1;
  case Extent::pageRows:
    return problem.place.pageRows;
  }
  return 0;
}

std::vector<Extent> attn::shapeOf(Role role, bool isRagged,
                                  const Placement &place) {
  std::vector<Extent> shape = factsOf(role).shape;
  if (place.isPaged() && (role == Role::k || role == Role::v)) {
    shape[0] = Extent::pages;
    shape[2] = Extent::pageRows;
  }
  bool isOfCache = place.any() && (role == Role::k || role == Role::v);
  if (!isRagged || isOfCache || shape.size() < 3 ||
      shape.front() != Extent::batch)
    return shape;
  shape.erase(shape.begin());
  if (shape.size() > 2) // columns of rows, which hold all heads
    std::swap(shape[0], shape[1]);
  return shape;
}

std::vector<int64_t> attn::sizesOf(Role role, const Problem &problem) {
  std::vector<int64_t> sizes;
  for (Extent extent : shapeOf(role, problem.ragged.has_value(), problem.place))
    sizes.push_back(valueOf(extent, problem));
  return sizes;
}

DataType attn::elementOf(Role role, const Problem &problem) {
  switch (factsOf(role).element) {
  case Element::result:
    return resultType(problem);
  case Element::f32:
    return DataType::f32;
  case Element::f16:
    return DataType::f16;
  case Element::keys:
    return kvTypeOf(problem);
  case Element::input:
  case Element::scores:
  case Element::any:
  case Element::read:
  case Element::whole:
  case Element::i32:
    break;
  }
  return problem.dtype;
}
