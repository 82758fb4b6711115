/* The packer for C and for every language that can call C.
 *
 * A problem is built call by call, packed, read and freed. Functions that can fail return 0 on
 * success and the exit code of the same failure on the command line otherwise (3 bad input, 4 does
 * not fit, 5 no answer in time); plimsoll_pack_message() says why in words. Indices are those that
 * plimsoll_pack_add_buffer() returned: 0, 1, 2... A handle belongs to one thread at a time.
 *
 *   plimsoll_pack* p = plimsoll_pack_new();
 *   plimsoll_pack_add_buffer(p, 0, 3, 4, 1);
 *   plimsoll_pack_add_buffer(p, 3, 9, 4, 1);
 *   if (plimsoll_pack_solve(p, -1, 1.0, 1) == 0)
 *     printf("%lld\n", (long long)plimsoll_pack_height(p));
 *   plimsoll_pack_free(p);
 */
#ifndef PLIMSOLL_PACK_PACK_C_H
#define PLIMSOLL_PACK_PACK_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plimsoll_pack plimsoll_pack;

plimsoll_pack* plimsoll_pack_new(void); /* NULL when memory is out */
void plimsoll_pack_free(plimsoll_pack* pack);

/* Lifetime [lower, upper), size in bytes, alignment >= 1. Returns the index, or -1 for one that
 * makes no sense. */
int64_t plimsoll_pack_add_buffer(plimsoll_pack* pack, int64_t lower, int64_t upper, int64_t size,
                                 int64_t alignment);
int plimsoll_pack_fix(plimsoll_pack* pack, int64_t buffer, int64_t offset);
int plimsoll_pack_hint(plimsoll_pack* pack, int64_t buffer, int64_t offset);
int plimsoll_pack_contiguous(plimsoll_pack* pack, const int64_t* buffers, size_t count);
int plimsoll_pack_colocated(plimsoll_pack* pack, const int64_t* buffers, size_t count);
/* A whole problem in the JSON of docs/formats/packing.md, in place of what was added. */
int plimsoll_pack_read_json(plimsoll_pack* pack, const char* text, size_t length);

/* capacity < 0: minimize. deterministic != 0: the same offsets on every machine. */
int plimsoll_pack_solve(plimsoll_pack* pack, int64_t capacity, double deadline_seconds,
                        int deterministic);

int64_t plimsoll_pack_offset(const plimsoll_pack* pack, int64_t buffer); /* -1: none */
int64_t plimsoll_pack_height(const plimsoll_pack* pack);
int64_t plimsoll_pack_lower_bound(const plimsoll_pack* pack);
const char* plimsoll_pack_status(const plimsoll_pack* pack); /* "optimal", "feasible", ... */
const char* plimsoll_pack_message(const plimsoll_pack* pack);

#ifdef __cplusplus
}
#endif

#endif
