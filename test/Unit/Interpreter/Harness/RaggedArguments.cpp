//===- RaggedArguments.cpp - Arrays of sequences, as kernels get them -----===//

#include "Harness/RaggedArguments.h"

#include "attn/Schedule/RaggedQueries.h"

using namespace mlir;
using namespace attn;

RaggedArguments::RaggedArguments(const Problem &problem)
    : firstQuery{0}, firstKey{0}, problem(problem) {
  for (const Lengths &each : problem.ragged->lengths) {
    firstQuery.push_back(firstQuery.back() + each.queries);
    firstKey.push_back(firstKey.back() + each.keys);
  }
  if (!areKeysRagged(problem))
    placed.emplace(problem, /*seed=*/uint64_t(firstKey.back() + 1));
}

RaggedRowsOf RaggedArguments::rowsOf(Role role) const {
  const Problem &p = problem;
  switch (role) {
  case Role::q:
  case Role::dQ:
    return {p.heads, p.queries, p.headDim};
  case Role::k:
  case Role::dK:
    return {p.kvHeads, p.keys, p.headDim};
  case Role::v:
  case Role::dV:
    return {p.kvHeads, p.keys, p.headDimV};
  default:
    return {p.heads, p.queries, p.headDimV};
  }
}

KernelArgument
RaggedArguments::of(const ArgumentRole &role, Type type, double scale,
                    const llvm::StringMap<uint64_t> &addresses) const {
  if (role == Role::scale)
    return float(scale);
  if (placed)
    if (auto ofCache = placed->argumentOf(role, type, addresses))
      return *ofCache;
  uint64_t address = addresses.lookup(str(role.at(Facet::itself)));
  if (isa<tile::PtrType>(type))
    return address;
  RaggedRowsOf rows = rowsOf(role.role);
  int64_t pitch = rows.pitch();
  if (auto map = dyn_cast<tile::TensorMapType>(type)) {
    int64_t height = map.getBoxRows();
    int64_t bytes = map.getElementType().getIntOrFloatBitWidth() / 8;
    bool isEmpty = role.facet == Facet::emptyMap;
    return TensorMapArgument{
        address - uint64_t(isEmpty ? 0 : height * pitch * bytes),
        {rows.rows + !isEmpty, rows.heads, height, map.getColumns()},
        {pitch, rows.columns, pitch, 1}};
  }
  int64_t value = 0;
  bool isStatistic = role.facts().element == Element::f32;
  bool isOfOffsets = role.facts().shape == std::vector{Extent::offsets};
  if (role.facts().isNumber())
    value = roleValue(role, problem);
  else if (isOfOffsets)
    value = role.facet == Facet::strideBatch;
  else if (role.facet == Facet::strideHead)
    value = isStatistic ? statisticPitch() : rows.columns;
  else if (role.facet == Facet::strideRow)
    value = isStatistic ? 1 : pitch;
  if (type.isInteger(32))
    return int32_t(value);
  return value;
}

static uint64_t upload(GlobalMemory &memory, ArrayRef<int64_t> offsets,
                       bool isWide) {
  int64_t bytes = isWide ? 8 : 4;
  uint64_t address = memory.allocate(int64_t(offsets.size()) * bytes);
  for (auto [i, offset] : llvm::enumerate(offsets))
    memory.write(address + i * bytes, &offset, bytes); // little-endian
  return address;
}

void RaggedArguments::uploadOffsets(
    GlobalMemory &memory, llvm::StringMap<uint64_t> &addresses) const {
  bool isWide = problem.ragged->isWide;
  addresses["cu_q"] = ::upload(memory, firstQuery, isWide);
  if (areKeysRagged(problem))
    addresses["cu_k"] = ::upload(memory, firstKey, isWide);
}

FailureOr<tile::Traffic>
RaggedArguments::count(tile::KernelOp kernel,
                       std::array<int64_t, 3> grid) const {
  SmallVector<int64_t> scalars;
  SmallVector<ArgumentRole> roles;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    ArgumentRole role = *roleOf(kernel, i);
    roles.push_back(role);
    if (std::optional<int64_t> number =
            placed ? placed->integerOf(role) : std::nullopt) {
      scalars.push_back(*number);
      continue;
    }
    if (auto map = dyn_cast<tile::TensorMapType>(type)) {
      scalars.push_back(map.getBoxRows());
      continue;
    }
    KernelArgument argument = of(role, type, /*scale=*/1, {});
    if (const auto *i32 = std::get_if<int32_t>(&argument))
      scalars.push_back(*i32);
    else if (const auto *i64 = std::get_if<int64_t>(&argument))
      scalars.push_back(*i64);
    else
      scalars.push_back(0);
  }
  auto read = [&](unsigned argument, int64_t at) -> std::optional<int64_t> {
    if (placed && !(roles[argument] == Role::offsetsQ))
      return placed->numberAt(roles[argument], at);
    const std::vector<int64_t> &offsets =
        roles[argument] == Role::offsetsQ ? firstQuery : firstKey;
    if (at < 0 || at >= int64_t(offsets.size()))
      return std::nullopt;
    return offsets[at];
  };
  return tile::countTraffic(kernel, grid, scalars, read);
}
