// PLIMSOLL_INLINE: a function that is inlined into every caller, whatever the compiler thinks of
// its size. Functions called from an inner loop need it: a loop that contains a call does not
// become vector code, and the callee would be compiled for plain x86-64.
#pragma once

#define PLIMSOLL_INLINE inline __attribute__((always_inline))
