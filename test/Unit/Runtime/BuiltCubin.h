//===- BuiltCubin.h - A cubin without an assembler --------------*- C++ -*-===//

#ifndef ATTN_UNITTESTS_RUNTIME_BUILTCUBIN_H
#define ATTN_UNITTESTS_RUNTIME_BUILTCUBIN_H

#include <cstdint>
#include <cstring>
#include <string>

namespace attn {

/// The bytes of a number, as ELF has them.
template <typename T> std::string elfBytes(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(&bytes[0], &value, sizeof(T));
  return bytes;
}

/// An ELF file for CUDA with one kernel, laid out as ptxas does: sections,
/// their headers, and last the headers of segments.
inline std::string builtCubin(const std::string &kernel, uint32_t registers,
                              uint32_t stackBytes) {
  const std::string names("\0.strtab\0.symtab\0.nv.info\0.text\0.bss\0", 38);
  const std::string strings = std::string(1, '\0') + kernel + '\0';
  std::string symbols(24, '\0');
  symbols += elfBytes<uint32_t>(uint32_t(names.size() + 1)) + '\x12' + '\0' +
             elfBytes<uint16_t>(4) + elfBytes<uint64_t>(0) +
             elfBytes<uint64_t>(64);
  std::string info;
  for (auto [attribute, value] :
       {std::pair<char, uint32_t>('\x2f', registers), {'\x11', stackBytes}})
    info += std::string("\4") + attribute + elfBytes<uint16_t>(8) +
            elfBytes<uint32_t>(1) + elfBytes<uint32_t>(value);
  const std::string code(64, '\xab');

  std::string body, sections(64, '\0');
  auto add = [&](uint32_t name, uint32_t type, const std::string &content,
                 uint32_t link, uint64_t size) {
    sections += elfBytes(name) + elfBytes(type) + elfBytes<uint64_t>(0) +
                elfBytes<uint64_t>(0) + elfBytes<uint64_t>(64 + body.size()) +
                elfBytes(size) + elfBytes(link) + elfBytes<uint32_t>(0) +
                elfBytes<uint64_t>(1) + elfBytes<uint64_t>(0);
    body += content;
  };
  add(1, 3, names + strings, 0, names.size() + strings.size());
  add(9, 2, symbols, 1, symbols.size());
  add(17, 0x70000000, info, 2, info.size());
  add(26, 1, code, 0, code.size());
  add(32, 8, "", 0, 1 << 20); // no bytes in the file

  uint64_t sectionsAt = 64 + body.size();
  uint64_t segmentsAt = sectionsAt + sections.size();
  std::string segments =
      elfBytes<uint32_t>(1) + elfBytes<uint32_t>(5) + elfBytes<uint64_t>(64) +
      elfBytes<uint64_t>(0) + elfBytes<uint64_t>(0) +
      elfBytes<uint64_t>(body.size()) + elfBytes<uint64_t>(body.size()) +
      elfBytes<uint64_t>(8);
  std::string header("\177ELF\2\1\1", 7);
  header.resize(16);
  header +=
      elfBytes<uint16_t>(2) + elfBytes<uint16_t>(190) + elfBytes<uint32_t>(1) +
      elfBytes<uint64_t>(0) + elfBytes(segmentsAt) + elfBytes(sectionsAt) +
      elfBytes<uint32_t>(0) + elfBytes<uint16_t>(64) + elfBytes<uint16_t>(56) +
      elfBytes<uint16_t>(1) + elfBytes<uint16_t>(64) + elfBytes<uint16_t>(6) +
      elfBytes<uint16_t>(1);
  return header + body + sections + segments;
}

} // namespace attn

#endif
