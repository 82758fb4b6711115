/* Plimsoll for C, and for every language that can call C: packing (pack/pack_c.h) and planning a
 * graph.
 *
 * Planning. A graph of tasks and values, a budget of bytes, and the techniques that may be used go
 * in as one struct of arrays; the fastest order of runs, copies and frees that was found within the
 * budget comes out.
 *
 *   tasks   0 ──a──▶ 1 ──b──▶ 2   task 0 makes a, task 1 reads a and makes b, task 2 reads a and b
 *           └────a──────────▶ 2   and makes c
 *
 *   int64_t input_offsets[] = {0, 0, 1, 3}, inputs[] = {0, 0, 1};    t reads inputs[offsets[t]...]
 *   int64_t output_offsets[] = {0, 1, 2, 3}, outputs[] = {0, 1, 2}; makes outputs[offsets[t]...]
 *   int64_t bytes[] = {4096, 1024, 16};
 *   double seconds[] = {1e-3, 2e-3, 1e-3};
 *   uint32_t value_flags[] = {0, 0, PLIMSOLL_VALUE_KEEP};
 *   plimsoll_plan_request request = plimsoll_plan_request_new();
 *   request.task_count = request.value_count = 3;
 *   ...
 *   request.budget_bytes = 5120;
 *   plimsoll_plan_answer* answer;
 *   if (plimsoll_plan_dag(&request, &answer) == PLIMSOLL_OK)
 *     ... answer->steps[0 ... answer->step_count)
 *   else fprintf(stderr, "%s\n", answer ? answer->message : "no memory");
 *   plimsoll_plan_answer_free(answer);
 *
 * Promises:
 *  1. The arrays belong to the caller, are read during the call only and may hold anything: what
 *     makes no sense is refused with a message. Only their lengths are believed.
 *  2. The answer belongs to the caller and holds no pointer into the request. Every plan in it has
 *     been replayed by an independent verifier.
 *  3. Calls may run at the same time on many threads. Nothing is printed, no file is opened, no
 *     process is started, no exception crosses.
 *  4. Requests grow at the end: one that is shorter than the library knows has zeros in the rest,
 *     one that is longer is taken if the rest is zero. Answers grow at the end too; `struct_size`
 *     says how far they go. Other changes get another `version`.
 */
#ifndef PLIMSOLL_PLIMSOLL_H
#define PLIMSOLL_PLIMSOLL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "plimsoll/pack/pack_c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What functions return: the exit code of the same end on the command line. */
enum {
  PLIMSOLL_OK = 0,
  PLIMSOLL_INTERNAL = 1,     /* internal error, or out of memory */
  PLIMSOLL_USAGE = 2,        /* an option makes no sense */
  PLIMSOLL_BAD_INPUT = 3,    /* the graph makes no sense */
  PLIMSOLL_DOES_NOT_FIT = 4, /* proven: no plan with these techniques is within the budget */
  PLIMSOLL_NO_ANSWER = 5     /* none was found in the time given */
};

/* techniques: which remedies may be used. Sharing and in-place results need no bit. */
enum {
  PLIMSOLL_RECOMPUTE = 1,
  PLIMSOLL_SWAP = 2,   /* to host memory and back, on streams of their own */
  PLIMSOLL_ENCODE = 4, /* into the smaller forms in `encodings` */
  PLIMSOLL_LOSSY = 8,  /* those that lose precision too */
  PLIMSOLL_SPLIT = 16  /* reserved: a request with this bit is refused */
};

/* task_flags. What is set here forbids; the three differ in what a reader of the request learns. */
enum {
  PLIMSOLL_TASK_ONCE = 1,      /* must not run twice */
  PLIMSOLL_TASK_RANDOM = 2,    /* would draw other numbers the second time: runs once */
  PLIMSOLL_TASK_COLLECTIVE = 4 /* others take part in it: runs once */
};

/* value_flags. A value that no task makes is an input: it is there before the first task. */
enum {
  /* an output, or an input of the next step: in memory after the last task */
  PLIMSOLL_VALUE_KEEP = 1,
  /* never leaves device memory between its first and its last use */
  PLIMSOLL_VALUE_PINNED = 2,
  PLIMSOLL_VALUE_NO_RECOMPUTE = 4, /* its task does not run again */
  PLIMSOLL_VALUE_NO_SWAP = 8       /* does not go to host memory */
};

/* alias_kinds: what it means that value v has alias_of[v] = u, u >= 0.
 * VIEW: v has no bytes of its own, it is a part of u or another shape of it. Its task reads u, or
 * makes it.
 *   Whoever reads v reads u. Keeping v keeps u. The bytes given for v do not count.
 * IN_PLACE: v may be written over u once u is not needed any more. Same bytes; its task reads u.
 * OVERWRITE: v is a new version of u and is always written over it, after every reader of u; its
 * task runs once. */
enum { PLIMSOLL_ALIAS_VIEW = 0, PLIMSOLL_ALIAS_IN_PLACE = 1, PLIMSOLL_ALIAS_OVERWRITE = 2 };

/* order: which orders of tasks may be tried. */
enum {
  PLIMSOLL_ORDER_SEARCH = 0, /* any that can be run */
  PLIMSOLL_ORDER_LIST = 1,   /* one chosen for a low peak, and the given one */
  PLIMSOLL_ORDER_GIVEN = 2   /* first runs in the order of the request */
};

/* A smaller form in which a value may wait between two uses. At most 64 for one value. */
typedef struct plimsoll_encoding {
  int64_t value;
  int64_t bytes;
  double encode_seconds;
  double decode_seconds;
  uint32_t lossy;    /* 1: what is decoded is not exactly what was encoded */
  uint32_t reserved; /* 0 */
} plimsoll_encoding;

/* A memory that values may lie in. The first is the device's. */
typedef struct plimsoll_memory {
  int64_t bytes; /* its capacity */
  int64_t reserved[5];
} plimsoll_memory;

/* Called on a thread of the search, one call at a time, whenever a faster plan is found. Not 0: end
 * the search, the best so far is the answer. */
typedef int32_t (*plimsoll_progress)(void* user, double seconds, int64_t peak_bytes,
                                     double elapsed_seconds);

enum { PLIMSOLL_GOAL_FASTEST = 0, PLIMSOLL_GOAL_SMALLEST = 1 };

#define PLIMSOLL_PLAN_VERSION 1

typedef struct plimsoll_plan_request {
  uint32_t struct_size; /* sizeof(plimsoll_plan_request) */
  uint32_t version;     /* PLIMSOLL_PLAN_VERSION */

  /* The graph. Arrays marked (may be NULL) stand for zeros then. */
  int64_t task_count;
  int64_t value_count;
  const int64_t* input_offsets;  /* task_count + 1 of them, ascending from 0 */
  const int64_t* inputs;         /* values; one that is named twice is read once */
  const int64_t* output_offsets; /* task_count + 1 */
  const int64_t* outputs;        /* values; at least one a task, 0 bytes will do */
  /* any finite cost >= 0, in any unit (copy rates are in the same) */
  const double* task_seconds;
  const int64_t* task_scratch;   /* bytes needed while it runs only (may be NULL) */
  const uint32_t* task_flags;    /* (may be NULL) */
  const char* const* task_names; /* for messages (may be NULL, or hold NULLs: numbers are used) */
  const int64_t* value_bytes;
  const uint32_t* value_flags;    /* (may be NULL) */
  const int64_t* alias_of;        /* a value, or -1 (may be NULL: no aliases) */
  const uint32_t* alias_kinds;    /* (may be NULL) */
  const char* const* value_names; /* (may be NULL, or hold NULLs) */
  /* of a training step: the first task of its backward half; 0: none */
  int64_t backward_task;

  /* What may be done, and what it costs. */
  uint32_t techniques;
  uint32_t order;
  double to_host_bytes_per_second;   /* with PLIMSOLL_SWAP: > 0 */
  double from_host_bytes_per_second; /* with PLIMSOLL_SWAP: > 0 */
  double copy_latency_seconds;       /* of every copy */
  int64_t encoding_count;
  const plimsoll_encoding* encodings;

  /* Bytes. */
  int64_t budget_bytes;            /* -1: none, everything is kept until its last reader */
  int64_t memory_count;            /* 0 or 1: hierarchies of memories are refused for now */
  const plimsoll_memory* memories; /* a capacity below the budget takes its place */
  /* > 0: place everything in one arena as well, at multiples of it; 0: do not */
  int64_t arena_alignment;

  /* The search. */
  double deadline_seconds; /* wall time for the whole call; 0: 3 seconds */
  /* > 0: count work instead of reading clocks (this many times the usual amount), on one thread:
   * the same request gives the same answer on every machine, and the deadline does not count */
  int64_t work;
  uint64_t seed;
  int32_t threads; /* 0: one for every core */
  int32_t reserved;
  /* looked at every few milliseconds; not 0: end the search (may be NULL) */
  const volatile int32_t* cancel;
  plimsoll_progress progress; /* (may be NULL) */
  void* progress_user;

  /* What is asked for: the fastest plan within the budget, or the smallest that takes at most the
   * fraction `slowdown` more time than keeping everything (0.05: 5 %); the budget is -1 then. */
  uint32_t goal;
  uint32_t reserved2; /* 0 */
  double slowdown;
} plimsoll_plan_request;

/* What every request starts from: zeros but for size and version. A budget of 0 bytes fits nothing:
 * set it. */
static inline plimsoll_plan_request plimsoll_plan_request_new(void) {
  plimsoll_plan_request request;
  memset(&request, 0, sizeof request);
  request.struct_size = (uint32_t)sizeof request;
  request.version = PLIMSOLL_PLAN_VERSION;
  return request;
}

enum {
  PLIMSOLL_STEP_COMPUTE = 0,   /* the first run of a task */
  PLIMSOLL_STEP_RECOMPUTE = 1, /* any later run */
  PLIMSOLL_STEP_COPY_OUT = 2,  /* device -> host */
  PLIMSOLL_STEP_COPY_IN = 3,   /* host -> device */
  PLIMSOLL_STEP_ENCODE = 4,    /* device -> encoded form, in device memory */
  PLIMSOLL_STEP_DECODE = 5,    /* encoded form -> device */
  PLIMSOLL_STEP_FREE = 6,      /* an instance ends; its memory is free from here on */
  /* the base of a view lies elsewhere now: take the view of it again */
  PLIMSOLL_STEP_VIEW = 7
};

/* One step. Steps of one stream run in the order of the list, those of different streams side by
 * side except where one waits. Memory changes hands in the order of the list: a plan run step by
 * step, alone, is right too. */
typedef struct plimsoll_step {
  int32_t kind;
  int32_t stream;         /* 0 computes, 1 copies to the host, 2 copies from the host */
  int64_t id;             /* the task of COMPUTE and RECOMPUTE, else the value */
  int64_t first_instance; /* in step_instances: `reads` of them, then `writes` */
  int32_t reads;
  int32_t writes;
  int64_t first_wait; /* in waits: steps of other streams that must have ended before */
  int64_t wait_count;
  double seconds;
  int64_t scratch_offset; /* of the task's scratch in the arena; -1: none */
} plimsoll_step;

enum { PLIMSOLL_ON_DEVICE = 0, PLIMSOLL_ENCODED = 1, PLIMSOLL_ON_HOST = 2 };

/* One materialisation of a value, in memory for steps [begin, end). Inputs begin at 0. */
typedef struct plimsoll_instance {
  int64_t value;
  int32_t form;
  int32_t reserved;
  int64_t encoding; /* in the request's `encodings`; -1: none */
  int64_t bytes;
  int64_t takes_over; /* the instance whose memory it takes and which ends with it; -1: none */
  int64_t begin;
  int64_t end;    /* step_count: it is there at the end */
  int64_t offset; /* in the arena; -1: none was asked for, or it is on the host */
} plimsoll_instance;

typedef struct plimsoll_limit {
  int64_t value;
  int64_t bytes;
} plimsoll_limit;

typedef struct plimsoll_plan_answer {
  uint32_t struct_size; /* of the library that made it */
  uint32_t version;
  int32_t status;      /* what the call returned */
  int32_t optimal;     /* 1: proven, no plan of this order within the budget is faster */
  const char* message; /* what is wrong and what to do about it; "" when nothing is */

  int64_t peak_bytes; /* on the device, scratch included */
  int64_t host_peak_bytes;
  double seconds;         /* predicted, over the three streams */
  double bound_seconds;   /* proven: no plan of this order within the budget is faster */
  int64_t keep_all_bytes; /* the same of the plan that keeps everything until its last reader */
  double keep_all_seconds;
  int64_t floor_bytes;           /* proven: no plan with these techniques needs less */
  int64_t smallest_budget_bytes; /* the smallest budget for which a plan is known */
  int64_t arena_bytes;           /* 0: none was asked for */

  int64_t step_count;
  const plimsoll_step* steps;
  int64_t instance_count;
  const plimsoll_instance* instances;
  const int64_t* step_instances;
  const int64_t* waits;
  int64_t limiting_count; /* the limiting values, largest first */
  const plimsoll_limit* limiting;
  int64_t limiting_task; /* where they meet; -1: at the end */
  double search_seconds;
} plimsoll_plan_answer;

/* Plans. Returns the status and sets *answer, NULL only when a pointer is NULL or memory is out. */
int plimsoll_plan_dag(const plimsoll_plan_request* request, plimsoll_plan_answer** answer);
void plimsoll_plan_answer_free(plimsoll_plan_answer* answer); /* NULL is allowed */

const char* plimsoll_version(void); /* "0.1.0" */

#ifdef __cplusplus
}
#endif

#endif
