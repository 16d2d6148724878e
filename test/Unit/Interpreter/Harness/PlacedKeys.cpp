//===- PlacedKeys.cpp - Keys that lie where the device says ---------------===//

#include "Harness/PlacedKeys.h"

#include "attn/Schedule/Tensor.h"

#include <limits>
#include <numeric>

using namespace mlir;
using namespace attn;

PlacedKeys::PlacedKeys(const Problem &problem, uint64_t seed, bool usesAll)
    : problem(problem) {
  Draws draw(seed);
  rowsHaveHeads = draw(0, 1);
  for (int64_t batch = 0; batch < problem.batch; ++batch)
    used.push_back(problem.ragged ? problem.ragged->lengths[size_t(batch)].keys
                   : usesAll      ? problem.keys
                   : draw(0, 4)   ? draw(0, problem.keys)
                                  : draw(0, 1) * problem.keys);
  const Placement &place = problem.place;
  if (!place.isPaged())
    return;
  int64_t columns = valueOf(Extent::tablePages, problem);
  pages = problem.batch * columns + draw(1, 3);
  std::vector<int32_t> order(size_t(pages), 0);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = pages - 1; i > 0; --i)
    std::swap(order[size_t(i)], order[size_t(draw(0, i))]);
  for (int64_t batch = 0; batch < problem.batch; ++batch)
    for (int64_t column = 0; column < columns; ++column) {
      bool isUsed = column * place.pageRows < used[size_t(batch)];
      table.push_back(isUsed       ? order[table.size()]
                      : draw(0, 1) ? -1
                                   : std::numeric_limits<int32_t>::max());
    }
}

Problem PlacedKeys::entry(int64_t batch) const {
  Problem one = problem;
  one.batch = 1;
  one.keys = used[size_t(batch)];
  one.place = {};
  return one;
}

ArrayShape PlacedKeys::shapeOf(Role role) const {
  int64_t columns = role == Role::k ? problem.headDim : problem.headDimV;
  if (problem.place.isPaged())
    return {pages, problem.kvHeads, problem.place.pageRows, columns};
  return {problem.batch, problem.kvHeads, problem.keys, columns};
}

std::array<int64_t, 4> PlacedKeys::stridesOf(Role role) const {
  ArrayShape shape = shapeOf(role);
  int64_t all = shape.heads * shape.rows * shape.columns;
  if (rowsHaveHeads)
    return {all, shape.columns, shape.heads * shape.columns, 1};
  return {all, shape.rows * shape.columns, shape.columns, 1};
}

std::vector<float> PlacedKeys::laidOut(Role role,
                                       const std::vector<float> &rows) const {
  ArrayShape shape = shapeOf(role);
  std::array<int64_t, 4> strides = stridesOf(role);
  std::vector<float> memory(size_t(shape.elements()),
                            std::numeric_limits<float>::quiet_NaN());
  int64_t page = problem.place.isPaged() ? shape.rows : problem.keys;
  int64_t columns =
      problem.place.isPaged() ? valueOf(Extent::tablePages, problem) : 1;
  for (int64_t batch = 0; batch < problem.batch; ++batch)
    for (int64_t head = 0; head < problem.kvHeads; ++head)
      for (int64_t key = 0; key < used[size_t(batch)]; ++key) {
        int64_t outer = problem.place.isPaged()
                            ? table[size_t(batch * columns + key / page)]
                            : batch;
        int64_t to =
            outer * strides[0] + head * strides[1] + key % page * strides[2];
        int64_t from = ((batch * problem.kvHeads + head) * problem.keys + key) *
                       shape.columns;
        std::copy_n(rows.begin() + from, shape.columns, memory.begin() + to);
      }
  return memory;
}

void PlacedKeys::upload(GlobalMemory &memory, const std::vector<float> &k,
                        const std::vector<float> &v,
                        llvm::StringMap<uint64_t> &addresses) const {
  addresses["k"] = attn::upload(memory, laidOut(Role::k, k), problem.dtype);
  addresses["v"] = attn::upload(memory, laidOut(Role::v, v), problem.dtype);
  int64_t bytes = problem.place.usedKeysBits / 8;
  uint64_t numbers =
      memory.allocate(std::max<int64_t>(bytes * problem.batch, 1));
  for (auto [i, number] : llvm::enumerate(used))
    memory.write(numbers + i * bytes, &number, bytes); // little-endian
  addresses["used_keys"] = numbers;
  if (table.empty())
    return;
  uint64_t place = memory.allocate(int64_t(table.size()) * 4);
  memory.write(place, table.data(), int64_t(table.size()) * 4);
  addresses["page_table"] = place;
}

std::optional<int64_t> PlacedKeys::integerOf(const ArgumentRole &role) const {
  if (isOfKeys(role)) {
    std::array<int64_t, 4> strides = stridesOf(role.role);
    for (auto [facet, stride] : llvm::zip_first(kStrides, strides))
      if (role.facet == facet)
        return stride;
    if (isMap(role.facet))
      return shapeOf(role.role).rows;
    return std::nullopt;
  }
  bool isTable = role.role == Role::pageTable;
  if (role.role != Role::usedKeys && !isTable)
    return std::nullopt;
  if (role.facet == Facet::strideBatch)
    return isTable ? valueOf(Extent::tablePages, problem) : 1;
  if (role.facet == Facet::strideHead)
    return 1;
  return role.facet == Facet::offset ? std::optional<int64_t>(0) : std::nullopt;
}

std::optional<KernelArgument>
PlacedKeys::argumentOf(const ArgumentRole &role, Type type,
                       const llvm::StringMap<uint64_t> &addresses) const {
  if (isOfKeys(role) && isa<tile::TensorMapType>(type)) {
    ArrayShape s = shapeOf(role.role);
    return TensorMapArgument{addresses.lookup(str(role.at(Facet::itself))),
                             {s.batch, s.heads, s.rows, s.columns},
                             stridesOf(role.role)};
  }
  if (isa<tile::PtrType>(type))
    return std::nullopt;
  std::optional<int64_t> number = integerOf(role);
  if (!number)
    return std::nullopt;
  return *number;
}

std::optional<int64_t> PlacedKeys::numberAt(const ArgumentRole &role,
                                            int64_t offset) const {
  if (role == Role::usedKeys)
    return used[size_t(offset)];
  if (role == Role::pageTable)
    return table[size_t(offset)];
  return std::nullopt;
}
