//===- Commands.h - The command lines, as functions -------------*- C++ -*-===//
//
// Each command is a program, and a function of libattn (`attn_main`), so that a
// Python wheel with that one library has them all.  A command reads options of
// its own, made when it runs, and gives the exit status.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_COMMANDS_COMMANDS_H
#define ATTN_TOOLS_COMMANDS_COMMANDS_H

namespace attn {

int optMain(int argc, char **argv);
int planMain(int argc, char **argv);
int runMain(int argc, char **argv);

} // namespace attn

#endif
