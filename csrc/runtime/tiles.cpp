#include "runtime/tiles.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <initializer_list>

// Defined by an emulator of the tile instructions that was loaded before this module: for tests on machines without AMX.
extern "C" __attribute__((weak)) bool unspool_emulates_tiles();

namespace unspool {
namespace {

const long GET_SUPPORTED = 0x1021, REQUEST = 0x1023, TILE_DATA = 18;  // of arch_prctl

bool processor_has_tiles() {
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a >> 5 & 1)) return false;  // AVX512_BF16: the conversion to bf16
  if (unspool_emulates_tiles && unspool_emulates_tiles()) return true;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 24 & 1) || !(d >> 22 & 1)) return false;  // AMX-TILE, AMX-BF16
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return false;                              // XGETBV
  unsigned low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low >> 17 & 3) == 3;  // the system saves the configuration and the tiles
}

[[noreturn]] void fail(int) { _exit(1); }

// In the child. Signals other than those of a fault are for the parent.
[[noreturn]] void run_in_child(bool (*right)()) {
  struct sigaction end = {};
  end.sa_handler = fail;
  sigset_t faults;
  sigemptyset(&faults);
  for (int fault : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) {
    sigaction(fault, &end, nullptr);
    sigaddset(&faults, fault);
  }
  sigprocmask(SIG_UNBLOCK, &faults, nullptr);
  _exit(right() ? 0 : 1);
}

}  // namespace

bool reports_tiles() {
  uint64_t supported = 0;
  return processor_has_tiles() && syscall(SYS_arch_prctl, GET_SUPPORTED, &supported) == 0 && supported >> TILE_DATA & 1;
}

bool tiles_work(bool (*right)()) {
  if (syscall(SYS_arch_prctl, REQUEST, TILE_DATA) != 0) return false;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // A fork without the handlers of pthread_atfork, which only children that go on need, and without SIGCHLD at its end.
  const long child = syscall(SYS_clone, 0L, nullptr, nullptr, nullptr, 0L);
  if (child == 0) run_in_child(right);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) return false;
  int status = 0;
  while (waitpid((pid_t)child, &status, __WALL) < 0)
    if (errno != EINTR) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace unspool
#else
namespace unspool {
bool reports_tiles() { return false; }
bool tiles_work(bool (*)()) { return false; }
}  // namespace unspool
#endif
