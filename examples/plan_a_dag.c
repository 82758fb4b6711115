/* Plans a small graph under a budget through the C interface, and prints what happens when. */
#include <stdio.h>

#include <plimsoll/plimsoll.h>

/* Four layers forward, four gradients back: gradient i reads what layer i made and the gradient
 * before it. */
enum { kLayers = 4, kTasks = 2 * kLayers };

int main(void) {
  static const char* const kinds[] = {"compute", "recompute", "copy out", "copy in",
                                      "encode",  "decode",    "free",     "view"};
  int64_t input_offsets[kTasks + 1] = {0}, inputs[2 * kTasks], output_offsets[kTasks + 1],
                                 outputs[kTasks], bytes[kTasks];
  double seconds[kTasks];
  uint32_t value_flags[kTasks] = {0};
  int64_t edges = 0;
  for (int t = 0; t < kTasks; ++t) {
    if (t > 0) inputs[edges++] = t - 1;
    if (t > kLayers) inputs[edges++] = kTasks - 1 - t;
    input_offsets[t + 1] = edges;
    output_offsets[t] = outputs[t] = t;
    bytes[t] = 1 << 20;
    seconds[t] = t < kLayers ? 1e-3 : 2e-3;
  }
  output_offsets[kTasks] = kTasks;
  value_flags[kTasks - 1] = PLIMSOLL_VALUE_KEEP;

  plimsoll_plan_request request = plimsoll_plan_request_new();
  request.task_count = request.value_count = kTasks;
  request.input_offsets = input_offsets;
  request.inputs = inputs;
  request.output_offsets = output_offsets;
  request.outputs = outputs;
  request.task_seconds = seconds;
  request.value_bytes = bytes;
  request.value_flags = value_flags;
  request.techniques = PLIMSOLL_RECOMPUTE;
  request.budget_bytes = 4 << 20;
  request.arena_alignment = 256;
  request.work = 1;

  plimsoll_plan_answer* answer = NULL;
  const int status = plimsoll_plan_dag(&request, &answer);
  if (status != PLIMSOLL_OK) {
    fprintf(stderr, "%s\n", answer ? answer->message : "memory is out");
    plimsoll_plan_answer_free(answer);
    return status;
  }
  printf("%lld bytes instead of %lld, %g s instead of %g, arena %lld bytes\n",
         (long long)answer->peak_bytes, (long long)answer->keep_all_bytes, answer->seconds,
         answer->keep_all_seconds, (long long)answer->arena_bytes);
  for (int64_t i = 0; i < answer->step_count; ++i)
    printf("%-10s %lld\n", kinds[answer->steps[i].kind], (long long)answer->steps[i].id);
  plimsoll_plan_answer_free(answer);
  return 0;
}
