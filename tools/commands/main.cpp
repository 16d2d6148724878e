//===- main.cpp - A command as a program ----------------------------------===//

#include "Commands.h"

int main(int argc, char **argv) { return attn::ATTN_COMMAND(argc, argv); }
