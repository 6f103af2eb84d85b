/* What a process asks for the time of day answers so many seconds later; see wrong-clock.ts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifdef __x86_64__
#define CONDITION_VERSION "GLIBC_2.3.2"
#else
#define CONDITION_VERSION "GLIBC_2.17"
#endif

int clock_gettime(clockid_t clock, struct timespec *time) {
  int result = syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    const char *seconds = getenv("WRONG_CLOCK_SECONDS");
    if (seconds != NULL) time->tv_sec += atol(seconds);
  }
  return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *seconds) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (seconds != NULL) *seconds = now.tv_sec;
  return now.tv_sec;
}

/* Who waits until a time of day that was read here has to wait until then by the kernel's clock. A monotonic time is small. */
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
  static int (*own)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  struct timespec right = *until;
  const char *seconds = getenv("WRONG_CLOCK_SECONDS");
  if (own == NULL) *(void **)&own = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", CONDITION_VERSION);
  if (seconds != NULL && right.tv_sec > 1000000000) right.tv_sec -= atol(seconds);
  return own(condition, mutex, &right);
}
