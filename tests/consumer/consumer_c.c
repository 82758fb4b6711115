#include <plimsoll/pack/pack_c.h>

int pack_in_c(void) {
  plimsoll_pack* pack = plimsoll_pack_new();
  int result = 0;
  plimsoll_pack_add_buffer(pack, 0, 3, 4, 1);
  plimsoll_pack_add_buffer(pack, 0, 9, 8, 1);
  if (plimsoll_pack_solve(pack, -1, 1.0, 1) != 0 || plimsoll_pack_height(pack) != 12) result = 1;
  plimsoll_pack_free(pack);
  return result;
}
