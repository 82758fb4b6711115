/* Runs a program with a preloaded library and prints what it used, in one line on stdout:
 *
 *   malloc_launch LIBRARY|- OUTPUT PROGRAM ARGUMENTS...
 *   wall 1.234567 user 1.200000 system 0.030000 rss 123456 status 0
 *
 * Resident memory is in KiB. It is this small, and linked statically, because a child's peak
 * resident memory never reads lower than its parent's was at the fork. The program's stdout goes to
 * OUTPUT. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval t) {
  return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  struct timespec begin;
  struct timespec end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  const pid_t child = fork();
  if (child == 0) {
    const int file = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0 || dup2(file, 1) < 0) _exit(126);
    if (strcmp(argv[1], "-") != 0) setenv("LD_PRELOAD", argv[1], 1);
    execvp(argv[3], argv + 3);
    _exit(127);
  }
  int status = 0;
  struct rusage used;
  if (child < 0 || wait4(child, &status, 0, &used) < 0) return 1;
  clock_gettime(CLOCK_MONOTONIC, &end);
  const double wall =
      (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
  printf("wall %.6f user %.6f system %.6f rss %ld status %d\n", wall, seconds(used.ru_utime),
         seconds(used.ru_stime), used.ru_maxrss,
         WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  return 0;
}
