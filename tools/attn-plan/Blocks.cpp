//===- Blocks.cpp - Which blocks are visible, as options ------------------===//

#include "Blocks.h"
#include "attn/Report/PatternFile.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace attn;
namespace cl = llvm::cl;

BlockOptions::BlockOptions(cl::OptionCategory &category)
    : blocks("blocks", cl::value_desc("queries x keys"),
             cl::desc("Blocks of scores, as 128x64, of which --density says "
                      "how many are visible"),
             cl::cat(category)),
      density("density", cl::value_desc("share"),
              cl::desc("Visible blocks, 0 to 1 of all"), cl::cat(category)),
      perHead("blocks-per-head",
              cl::desc("Every query head sees blocks of its own"),
              cl::cat(category)),
      pattern("pattern", cl::value_desc("file"),
              cl::desc("Lists of visible blocks, as text or JSON"),
              cl::cat(category)) {}

static std::optional<std::string> readFile(const std::string &name,
                                           Problem &problem) {
  auto file = llvm::MemoryBuffer::getFile(name, /*IsText=*/true);
  if (!file)
    return "expects a file that can be read, but got '" + name +
           "': " + file.getError().message();
  // Its rows are those of a problem that is legal without it.
  if (auto sentence = check(problem))
    return sentence;
  std::string error;
  problem.pattern = readPattern((*file)->getBuffer(), name, problem, error);
  if (!problem.pattern)
    return error;
  return std::nullopt;
}

std::optional<std::string> BlockOptions::read(Problem &problem) const {
  bool hasFile = pattern.getNumOccurrences() > 0;
  bool hasBlocks = blocks.getNumOccurrences() > 0;
  bool hasDensity = density.getNumOccurrences() > 0;
  if (hasFile && (hasBlocks || hasDensity || perHead))
    return "expects --pattern, or --blocks with --density, but got both";
  if (hasFile)
    return readFile(pattern, problem);
  if (hasBlocks != hasDensity)
    return std::string("expects --blocks and --density, but got only ") +
           (hasBlocks ? "--blocks" : "--density");
  if (perHead && !hasBlocks)
    return "expects --blocks with --blocks-per-head, but got none";
  if (!hasBlocks)
    return std::nullopt;
  std::optional<BlockSize> size = parseBlockSize(blocks.getValue());
  if (!size)
    return "expects --blocks queries x keys, as 128x64, but got '" +
           blocks.getValue() + "'";
  problem.pattern = Pattern(*size, density, !perHead);
  return check(*problem.pattern, problem);
}

std::string BlockOptions::note(const Problem &problem) {
  if (!problem.pattern)
    return "";
  BlockSize size = problem.pattern->size();
  // What divides the blocks that an op takes.
  constexpr int64_t multiple = 64;
  if (size.queries % multiple || size.keys % multiple)
    return "blocks of " + str(size) + " have no kernel: an op takes those of " +
           "multiples of " + std::to_string(multiple);
  bool isOne = size.queries >= problem.queries && size.keys >= problem.keys;
  double density = problem.pattern->hasLists() ? 1 : problem.pattern->density();
  if (isOne && density > 0 && density < 1)
    return "all queries and keys are one block of " + str(size) +
           ", which is visible or not: a share of it is an average of heads or "
           "of calls";
  return "";
}
