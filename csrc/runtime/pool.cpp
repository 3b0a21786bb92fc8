#include "runtime/pool.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/memory.h"

namespace unspool {
namespace {

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

thread_local bool runs_alone = false;

std::atomic<int> wanted{1};  // unspool.kernels.machine sets it when it is imported

struct Pool {
  std::mutex busy;  // held by the caller whose body runs

  std::mutex sleep;
  std::condition_variable wakeup;
  std::vector<std::thread> workers;
  std::atomic<uint64_t> round{0};      // rises by one for every call
  std::atomic<int> unfinished{0};      // workers that have not finished the round
  const std::function<void(Team)>* body = nullptr;
  int count = 1;                       // threads of the round, the caller included
  int most = 256;                      // workers with this index or a higher one end with the round
  Barrier* barrier = nullptr;

  void work(int index, uint64_t seen) {
    for (;;) {
      for (int spins = 0; round.load(std::memory_order_acquire) == seen && spins < 20000; spins++) pause_briefly();
      if (round.load(std::memory_order_acquire) == seen) {
        std::unique_lock<std::mutex> lock(sleep);
        wakeup.wait(lock, [&] { return round.load(std::memory_order_acquire) != seen; });
      }
      seen = round.load(std::memory_order_acquire);
      if (index < count) (*body)({index, count, barrier});
      const bool ends = index >= most;
      unfinished.fetch_sub(1, std::memory_order_acq_rel);
      if (ends) return;
    }
  }

  // Start a round for all workers: those below `count` run the body.
  void publish() {
    unfinished.store((int)workers.size(), std::memory_order_relaxed);
    {
      std::lock_guard<std::mutex> lock(sleep);
      round.fetch_add(1, std::memory_order_acq_rel);
    }
    wakeup.notify_all();
  }

  void wait_for_workers() {
    for (int spins = 0; unfinished.load(std::memory_order_acquire) != 0; spins++) {
      if (spins < 4000) pause_briefly();
      else std::this_thread::yield();
    }
  }

  // End the workers that `threads` threads do not need.
  void shrink(int threads) {
    if ((int)workers.size() < threads) return;
    count = 0;
    most = threads;
    publish();
    wait_for_workers();
    most = 256;
    for (; (int)workers.size() >= threads; workers.pop_back()) workers.back().join();
  }

  void run(const std::function<void(Team)>& task, int n) {
    try {
      while ((int)workers.size() < n - 1) {
        const int index = (int)workers.size() + 1;
        const uint64_t seen = round.load();
        workers.emplace_back([this, index, seen] { work(index, seen); });
      }
    } catch (const std::system_error&) {  // no more threads from the system: fewer give the same bits
      n = (int)workers.size() + 1;
    }
    Barrier together(n);
    body = &task;
    count = n;
    barrier = &together;
    publish();
    task({0, n, &together});
    wait_for_workers();
  }
};

// Never destroyed: a worker may still sleep in it when the process ends. After a fork the child gets a new
// one, since threads do not cross.
Pool* pool = nullptr;

void before_fork() { pool->busy.lock(); lock_memory(); }
void in_parent() { unlock_memory(); pool->busy.unlock(); }
void in_child() { unlock_memory(); pool = new Pool; }

Pool& the_pool() {
  static const bool made = [] {
    pool = new Pool;
    pthread_atfork(before_fork, in_parent, in_child);
    return true;
  }();
  (void)made;
  return *pool;
}

}  // namespace

void Barrier::wait() {
  if (count == 1) return;
  const unsigned now = generation.load(std::memory_order_acquire);
  if (waiting.fetch_add(1, std::memory_order_acq_rel) + 1 == count) {
    waiting.store(0, std::memory_order_relaxed);
    generation.store(now + 1, std::memory_order_release);
    return;
  }
  for (int spins = 0; generation.load(std::memory_order_acquire) == now; spins++) {
    if (spins < 2000) pause_briefly();
    else std::this_thread::yield();
  }
}

void set_alone(bool alone) { runs_alone = alone; }
int threads() { return wanted.load(); }
void set_threads(int count) {
  wanted.store(count);
  Pool& shared = the_pool();
  std::lock_guard<std::mutex> mine(shared.busy);  // waits for a call that is under way
  shared.shrink(wanted.load());
}

void parallel(const std::function<void(Team)>& body, int most) {
  Pool& shared = the_pool();
  std::unique_lock<std::mutex> mine(shared.busy, std::defer_lock);
  if (most > 1 && !runs_alone && threads() > 1 && mine.try_lock()) {
    const int n = std::min(threads(), most);  // under the lock: no worker is started that set_threads has just ended
    if (n > 1) return shared.run(body, n);
    mine.unlock();
  }
  Barrier alone(1);
  body({0, 1, &alone});
}

}  // namespace unspool
