#include <plimsoll/pack/pack_c.h>

int pack_in_c(void);

int pack_in_c(void) {
  plimsoll_pack* pack = plimsoll_pack_new();
  int result = 0;
  if (plimsoll_pack_add_buffer(pack, 0, 3, -4, 1) != -1) result = 2; /* as the header says */
  if (plimsoll_pack_add_buffer(pack, 0, 3, 4, 0) != -1) result = 3;
  if (plimsoll_pack_add_buffer(pack, 3, 0, 4, 1) != -1) result = 4;
  if (plimsoll_pack_add_buffer(pack, 0, 3, 4, 1) != 0) result = 5;
  if (plimsoll_pack_add_buffer(pack, 0, 9, 8, 1) != 1) result = 6;
  if (plimsoll_pack_solve(pack, -1, 1.0, 1) != 0 || plimsoll_pack_height(pack) != 12) result = 1;
  plimsoll_pack_free(pack);
  return result;
}
