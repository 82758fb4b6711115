/* examples/plan_a_dag.c as an installed program, and the packer beside it from the same library. */
#define main plan_in_c
#include "plan_a_dag.c"
#undef main

int pack_in_c(void);

int main(void) {
  const int packed = pack_in_c();
  return packed != 0 ? packed : plan_in_c();
}
