//===- ClauseCase.cpp - Clauses of an op, their arrays and truth ----------===//

#include "Harness/ClauseCase.h"

#include "Harness/Normals.h"

#include "attn/Host/Rounding.h"
#include "attn/IR/CaptureGradients.h"
#include "attn/IR/RegionBands.h"
#include "attn/Schedule/Tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace mlir;
using namespace attn;

/// Elements in front of an array, and more of a row than it has.
static constexpr int64_t kBefore = 5, kGap = 3;

static constexpr std::pair<Role, ClauseGroup> kScaleRoles[] = {
    {Role::scaleQ, ClauseGroup::scaleQ},
    {Role::scaleK, ClauseGroup::scaleK},
    {Role::scaleV, ClauseGroup::scaleV}};

static std::string spelled(DataType type) {
  return type == DataType::f8e4m3 ? "f8E4M3FN" : std::string(name(type));
}

/// The op that has these clauses.
static std::string moduleOf(const Problem &p, const std::string &text,
                            const std::vector<std::string> &captures) {
  auto tensor = [](std::vector<int64_t> sizes, const std::string &element) {
    std::string type = "tensor<";
    for (int64_t size : sizes)
      type += std::to_string(size) + "x";
    return type + element + ">";
  };
  std::string q = tensor(sizesOf(Role::q, p), spelled(p.dtype)),
              k = tensor(sizesOf(Role::k, p), spelled(p.dtype)),
              v = tensor(sizesOf(Role::v, p), spelled(p.dtype)),
              o = tensor(sizesOf(Role::o, p), spelled(resultType(p)));
  std::string arguments;
  for (size_t i = 0; i < captures.size(); ++i)
    arguments += ", %x" + std::to_string(i) + ": " + captures[i];
  return "func.func @f(%q: " + q + ", %k: " + k + ", %v: " + v + arguments +
         ") -> " + o + " {\n  %o = attn.forward %q, %k, %v " + text + " : " +
         q + ", " + k + ", " + v + " -> " + o + "\n  return %o : " + o + "\n}";
}

std::string attn::readByDistance(const std::string &capture,
                                 const std::string &type) {
  return "captures(" + capture + " : " + type + R"()
      score (%z : f32, %b, %h, %i, %j, %nq, %nk, %x) {
        %d = arith.subi %i, %j : index
        %p = arith.addi %d, %nk : index
        %t = attn.read %x[%p, %h] : )" +
         type + R"(
        %s = arith.addf %z, %t : f32
        %r = math.tanh %s : f32
        attn.yield %r : f32
      })";
}

ClauseCase::ClauseCase(MLIRContext &context, const Problem &problem,
                       const std::string &text,
                       const std::vector<std::string> &captures, uint64_t seed,
                       int64_t most, std::vector<int64_t> gradients)
    : gradients(std::move(gradients)), text(text) {
  context.loadDialect<AttnDialect, func::FuncDialect, index::IndexDialect>();
  std::string source = moduleOf(problem, text, captures);
  module = parseSourceString<ModuleOp>(source, &context);
  EXPECT_TRUE(module) << source;
  if (!module)
    return;
  module->walk([&](AttentionOpInterface found) { op = found; });
  sizes = clauseSizes(op);
  Draws draw(seed);
  Normals normal(seed);
  for (Value input : op.clauseInputs()) {
    auto type = cast<ShapedType>(input.getType());
    CapturedArray &array = arrays.emplace_back();
    array.sizes = type.getShape().vec();
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      if (Type element = type.getElementType(); element.isBF16())
        array.reals.push_back(roundToBf16(normal()));
      else if (element.isF16())
        array.reals.push_back(roundToF16(normal()));
      else if (element.isF32())
        array.reals.push_back(normal());
      else
        array.wholes.push_back(-draw(0, element.isInteger(1) ? 1 : most));
    if (layouts.size() < op.captures().size())
      layouts.push_back(layoutOf(type));
  }
  // Of Q and K no scale is negative.
  for (ClauseGroup group : {ClauseGroup::scaleQ, ClauseGroup::scaleK})
    if (sizes[unsigned(group)] != 0)
      for (double &scale : arrays[beginOf(group)].reals)
        scale = std::abs(scale);
  reference = std::make_unique<ClauseReference>(op, arrays, problem.queries,
                                                problem.keys);
}

size_t ClauseCase::beginOf(ClauseGroup group) const {
  return std::accumulate(sizes.begin(), sizes.begin() + unsigned(group),
                         size_t(0));
}

ClauseCase::Layout ClauseCase::layoutOf(ShapedType type) const {
  std::vector<int64_t> strides(type.getRank(), 1);
  int64_t elements = 1;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    strides[dim] = elements;
    elements = elements * type.getDimSize(dim) + (dim > 0 ? kGap : 0);
  }
  return {type.getElementType(), strides, elements};
}

ScoreClauses ClauseCase::flags() {
  ScoreClauses flags;
  flags.sees = op.sees() != nullptr;
  flags.score = op.score() != nullptr;
  flags.sinks = !op.clauseOperands(ClauseGroup::sinks).empty();
  if (op.score())
    for (const GradientRead &one : gradientReads(*op.score(), gradients))
      ++(one.isOfHead ? flags.headGradients : flags.pairGradients);
  for (size_t target = 0; target < gradients.size(); ++target)
    flags.sinkGradients |= isOfSinks(target);
  return flags;
}

Bands ClauseCase::bandsFor(const Problem &problem) {
  bool mayHave = op.sees() && !whyNoRuns(problem);
  return mayHave ? bandsOfRegion(*op.sees(), problem.mask) : Bands();
}

void ClauseCase::addTo(KernelRequest &request) {
  request.sees = op.sees();
  request.score = op.score();
  request.gradients = gradients;
}

/// Calls with the number of every element, and where it lies.
static void forEach(const std::vector<int64_t> &sizes,
                    const std::vector<int64_t> &strides,
                    function_ref<void(int64_t, int64_t)> body) {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  for (int64_t number = 0; number < count; ++number) {
    int64_t rest = number, place = 0;
    for (size_t dim = sizes.size(); dim-- > 0; rest /= sizes[dim])
      place += rest % sizes[dim] * strides[dim];
    body(number, place);
  }
}

void ClauseCase::upload(GlobalMemory &memory,
                        llvm::StringMap<uint64_t> &addresses) const {
  for (size_t i = 0; i < layouts.size(); ++i) {
    const CapturedArray &array = arrays[i];
    const Layout &layout = layouts[i];
    int64_t bits = layout.element.getIntOrFloatBitWidth();
    int64_t bytes = std::max<int64_t>(bits / 8, 1);
    std::vector<uint8_t> data((kBefore + layout.elements) * bytes, 0xff);
    forEach(array.sizes, layout.strides, [&](int64_t number, int64_t place) {
      uint64_t word;
      if (array.reals.empty())
        word = uint64_t(array.wholes[number]) & (bits == 1 ? 1 : ~uint64_t(0));
      else if (layout.element.isBF16())
        word = bf16FromFloat(float(array.reals[number]));
      else if (layout.element.isF16())
        word = f16FromFloat(float(array.reals[number]));
      else
        word = bitsOfFloat(float(array.reals[number]));
      std::memcpy(&data[(kBefore + place) * bytes], &word, bytes);
    });
    uint64_t address = memory.allocate(int64_t(data.size()));
    memory.write(address, data.data(), int64_t(data.size()));
    addresses[str(ArgumentRole(Role::capture, Facet::itself, int(i)))] =
        address;
  }
  auto uploadReals = [&](ClauseGroup group, Role role) {
    if (sizes[unsigned(group)] == 0)
      return;
    const std::vector<double> &reals = arrays[beginOf(group)].reals;
    addresses[str(role)] = attn::upload(
        memory, std::vector<float>(reals.begin(), reals.end()), DataType::f32);
  };
  uploadReals(ClauseGroup::sinks, Role::sinks);
  for (auto [role, group] : kScaleRoles)
    uploadReals(group, role);
}

/// Of what is one for all the host makes strides 0.
std::optional<int64_t>
ClauseCase::integerOfScale(const ArgumentRole &role) const {
  for (auto [scale, group] : kScaleRoles) {
    if (role.role != scale)
      continue;
    const std::vector<int64_t> &sizes = arrays[beginOf(group)].sizes;
    if (role.facet == Facet::strideBatch)
      return sizes[0] == 1 ? 0 : sizes[1];
    return role.facet == Facet::strideHead && sizes[1] != 1 ? 1 : 0;
  }
  return std::nullopt;
}

std::optional<int64_t> ClauseCase::integerOf(const ArgumentRole &role) const {
  if (role.facet == Facet::itself)
    return std::nullopt;
  if (role.role == Role::sinks)
    return role.facet == Facet::strideBatch ? 1 : 0;
  if (std::optional<int64_t> scale = integerOfScale(role))
    return scale;
  if (role.role == Role::captureGradient) {
    if (role.facet == Facet::offset)
      return kBeforeGradient;
    std::vector<int64_t> sizes = sizesOfGradient(role.part);
    for (size_t dim = 0; dim < sizes.size(); ++dim)
      if (role.facet == kCapturedSizes[dim])
        return sizes[dim];
    return std::nullopt;
  }
  if (role.role != Role::capture)
    return std::nullopt;
  if (role.facet == Facet::offset)
    return kBefore;
  const Layout &layout = layouts[role.part];
  for (size_t dim = 0; dim < layout.strides.size(); ++dim) {
    if (role.facet == kCapturedStrides[dim])
      return layout.strides[dim];
    if (role.facet == kCapturedSizes[dim])
      return arrays[role.part].sizes[dim];
  }
  return std::nullopt;
}
