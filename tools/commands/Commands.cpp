//===- Commands.cpp - attn_main: the commands of libattn ------------------===//

#include "Commands.h"

#include "attn-c/Attn.h"

#include <cstring>

int32_t attn_main(const char *command, int32_t argc, char **argv) {
  const struct {
    const char *name;
    int (*run)(int, char **);
  } commands[] = {{"attn-opt", attn::optMain},
                  {"attn-plan", attn::planMain},
                  {"attn-run", attn::runMain}};
  for (const auto &known : commands)
    if (command && std::strcmp(command, known.name) == 0)
      return known.run(argc, argv);
  return ATTN_NO_COMMAND;
}
