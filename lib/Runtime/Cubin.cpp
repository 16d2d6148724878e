//===- Cubin.cpp - Reading the notes of ptxas -----------------------------===//

#include "attn/Runtime/Cubin.h"

#include <cstring>
#include <map>

using namespace attn::runtime;

namespace {

// The parts of ELF64 (System V ABI) that we look at.
struct FileHeader {
  unsigned char ident[16];
  uint16_t type, machine;
  uint32_t version;
  uint64_t entry, programOffset, sectionOffset;
  uint32_t flags;
  uint16_t headerSize, programSize, programCount, sectionSize, sectionCount,
      nameSection;
};
struct SectionHeader {
  uint32_t name, type;
  uint64_t flags, address, offset, size;
  uint32_t link, info;
  uint64_t alignment, entrySize;
};
struct Symbol {
  uint32_t name;
  unsigned char info, other;
  uint16_t section;
  uint64_t value, size;
};

struct SegmentHeader {
  uint32_t type, flags;
  uint64_t offset, virtualAddress, physicalAddress, fileSize, memorySize,
      alignment;
};

constexpr uint16_t kMachineCuda = 190;
constexpr uint32_t kSectionSymbols = 2;
constexpr uint32_t kSectionWithoutBytes = 8;
/// From here on types are not the format's; what they have in the file is
/// theirs to say.
constexpr uint32_t kFirstForeignSection = 0x60000000;
constexpr unsigned char kSymbolFunction = 2;

// An entry of `.nv.info`: a format, an attribute, and for format 4 the size of
// a payload.  Seen in the output of ptxas 13.0; both payloads are the index of
// the kernel's symbol and the value.
constexpr uint8_t kFormatSized = 4;
constexpr uint8_t kAttributeFrameSize = 0x11;
constexpr uint8_t kAttributeRegisters = 0x2f;

/// Copies a T out of the file; false behind its end.
template <typename T>
bool readAt(std::string_view image, uint64_t offset, T &value) {
  if (offset > image.size() || image.size() - offset < sizeof(T))
    return false;
  std::memcpy(&value, image.data() + offset, sizeof(T));
  return true;
}

/// Whether so many bytes from an offset on lie in the file.
bool isInside(std::string_view image, uint64_t offset, uint64_t size) {
  return offset <= image.size() && size <= image.size() - offset;
}

/// How many bytes of a section must be in the file.
uint64_t fileBytes(const SectionHeader &header) {
  bool hasBytes =
      header.type != kSectionWithoutBytes && header.type < kFirstForeignSection;
  return hasBytes ? header.size : 0;
}

/// The bytes of a section; empty when they are not in the file.
std::string_view contents(std::string_view image, const SectionHeader &header) {
  if (header.type == kSectionWithoutBytes ||
      !isInside(image, header.offset, header.size))
    return {};
  return image.substr(header.offset, header.size);
}

/// The zero-terminated string at an offset of a string table.
std::string stringAt(std::string_view table, uint64_t offset) {
  if (offset >= table.size())
    return {};
  std::string_view rest = table.substr(offset);
  return std::string(rest.substr(0, rest.find('\0')));
}

} // namespace

/// The kernels by the index of their symbols.
static std::map<uint32_t, CubinKernel>
readSymbols(std::string_view image,
            const std::vector<SectionHeader> &sections) {
  std::map<uint32_t, CubinKernel> kernels;
  for (const SectionHeader &section : sections) {
    if (section.type != kSectionSymbols || section.link >= sections.size())
      continue;
    std::string_view names = contents(image, sections[section.link]);
    std::string_view table = contents(image, section);
    Symbol symbol;
    for (uint32_t i = 0; readAt(table, i * sizeof(Symbol), symbol); ++i)
      if ((symbol.info & 15) == kSymbolFunction)
        kernels[i].name = stringAt(names, symbol.name);
  }
  return kernels;
}

/// Enters what `.nv.info` says into the kernels.
static void readInfo(std::string_view info,
                     std::map<uint32_t, CubinKernel> &kernels) {
  struct Entry {
    uint8_t format, attribute;
    uint16_t size;
  } entry;
  for (uint64_t at = 0; readAt(info, at, entry);) {
    at += sizeof(Entry);
    if (entry.format != kFormatSized)
      continue;
    uint32_t symbol = 0, value = 0;
    bool read = readAt(info, at, symbol) && readAt(info, at + 4, value);
    at += entry.size;
    auto kernel = kernels.find(symbol);
    if (!read || kernel == kernels.end())
      continue;
    if (entry.attribute == kAttributeRegisters)
      kernel->second.registersPerThread = value;
    if (entry.attribute == kAttributeFrameSize)
      kernel->second.stackBytesPerThread = value;
  }
}

/// Reads a table of headers; why not, if a part of it or of what it lists is
/// not in the file.
template <typename Header, typename Size>
static Status readTable(std::string_view image, const char *what,
                        uint64_t offset, uint16_t entrySize, uint16_t count,
                        Size bytesOf, std::vector<Header> &table) {
  auto isCut = [&](const std::string &part) {
    return Status::failure("the cubin ends, at " +
                           std::to_string(image.size()) + " bytes, before " +
                           part + " does");
  };
  if (count > 0 && entrySize < sizeof(Header))
    return Status::failure("expects " + std::string(what) + " headers of " +
                           std::to_string(sizeof(Header)) +
                           " bytes or more, but got " +
                           std::to_string(entrySize));
  if (!isInside(image, offset, uint64_t(entrySize) * count))
    return isCut("its table of " + std::string(what) + "s");
  for (uint64_t i = 0; i < count; ++i) {
    Header header;
    readAt(image, offset + i * entrySize, header);
    uint64_t bytes = bytesOf(header);
    if (bytes > 0 && !isInside(image, header.offset, bytes))
      return isCut(std::string(what) + " " + std::to_string(i));
    table.push_back(header);
  }
  return Status::success();
}

Expected<std::vector<CubinKernel>>
attn::runtime::readCubin(std::string_view image) {
  FileHeader header;
  if (!readAt(image, 0, header) || std::memcmp(header.ident, "\177ELF\2", 5) ||
      header.machine != kMachineCuda)
    return Status::failure("expects a cubin, but got " +
                           std::to_string(image.size()) +
                           " bytes that are no ELF file for CUDA");
  std::vector<SectionHeader> sections;
  std::vector<SegmentHeader> segments;
  Status read =
      readTable(image, "section", header.sectionOffset, header.sectionSize,
                header.sectionCount, fileBytes, sections);
  if (read.ok())
    read = readTable(
        image, "segment", header.programOffset, header.programSize,
        header.programCount,
        [](const SegmentHeader &segment) { return segment.fileSize; },
        segments);
  if (!read.ok())
    return read;

  std::map<uint32_t, CubinKernel> kernels = readSymbols(image, sections);
  if (header.nameSection < sections.size()) {
    std::string_view names = contents(image, sections[header.nameSection]);
    for (const SectionHeader &section : sections)
      if (stringAt(names, section.name) == ".nv.info")
        readInfo(contents(image, section), kernels);
  }
  std::vector<CubinKernel> result;
  for (auto &[symbol, kernel] : kernels)
    result.push_back(std::move(kernel));
  if (result.empty())
    return Status::failure("expects a cubin with kernels, but got one without");
  return result;
}
