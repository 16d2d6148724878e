// Prints the names of the GPUs that attn knows.
#include "attn/Machine/Machine.h"

#include <iostream>

int main() {
  for (const attn::Machine &machine : attn::machines())
    std::cout << machine.name << "\n";
}
