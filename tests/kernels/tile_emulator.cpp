// Emulates the tile instructions of AMX on a machine that has none: a library for LD_PRELOAD, built by test_amx.py.
//
// The instructions are illegal there, so each raises SIGILL. The handler decodes the instruction, computes it on registers of the
// thread, and steps over it. TDPBF16PS is computed as Intel's manual defines it:
//
//   E, O = chains of fused multiply-adds over even and odd k, from +0;   c = c + (E + O)
//
// with denormal inputs and results flushed to zero. Three calls of the C library are intercepted: sigaction, so that another handler of
// SIGILL (faulthandler) gets only what is not emulated, and syscall, which asks the system for tiles and forks.
//
// UNSPOOL_EMULATOR names what does not work: "wrong" (another order of sums), "late" (the same, after the first products), "illegal"
// (tile instructions), "refused" (the request to the system), "unforked" (fork).
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <atomic>

namespace {

const char* mode = "";
std::atomic<long> requested{0}, in_use{0}, products{0};

struct Configuration {
  uint8_t palette, start_row, reserved[14];
  uint16_t bytes[16];
  uint8_t rows[16];
};
struct Registers {
  bool configured;
  Configuration config;
  uint8_t tile[8][16][64];
};
thread_local Registers registers;

// An instruction: C4, RXB and map, W vvvv L pp, opcode, ModRM, and for an operand in memory SIB and displacement.
struct Instruction {
  int prefix, opcode, reg, rm, third;  // third: vvvv
  bool memory;
  uint64_t base, stride;  // of the operand in memory: its address without the index, and the index
  int length;
};

uint64_t general(const ucontext_t* c, int number) {
  static const int at[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                             REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return (uint64_t)c->uc_mcontext.gregs[at[number]];
}

bool decode(const ucontext_t* c, Instruction& i) {
  const uint8_t* code = (const uint8_t*)c->uc_mcontext.gregs[REG_RIP];
  if (code[0] != 0xc4 || (code[1] & 0x1f) != 2 || (code[2] & 0x84) != 0) return false;  // map 0F38, W0, 128 bits
  const int x = code[1] & 0x40 ? 0 : 8, b = code[1] & 0x20 ? 0 : 8;
  i = {code[2] & 3, code[3], code[4] >> 3 & 7, code[4] & 7, ~(code[2] >> 3) & 15, code[4] >> 6 != 3, 0, 0, 5};
  if (i.opcode != 0x49 && i.opcode != 0x4b && i.opcode != 0x5c) return false;
  if (!i.memory) return true;
  const int mod = code[4] >> 6;
  const uint8_t* after = code + 5;
  int base = i.rm + b;
  if (i.rm == 4) {
    const uint8_t sib = *after++;
    base = (sib & 7) + b;
    const int index = (sib >> 3 & 7) + x;
    if (index != 4) i.stride = general(c, index) << (sib >> 6);
  }
  const bool no_base = mod == 0 && (base & 7) == 5;
  int32_t displacement = 0;
  if (mod == 1) displacement = (int8_t)*after, after += 1;
  if (mod == 2 || no_base) memcpy(&displacement, after, 4), after += 4;
  i.length = (int)(after - code);
  i.base = (no_base ? (i.rm == 4 ? 0 : (uint64_t)after) : general(c, base)) + (uint64_t)(int64_t)displacement;
  return true;
}

bool configure(const Configuration& config) {
  bool valid = config.palette == 1 && config.start_row == 0;
  for (uint8_t zero : config.reserved) valid = valid && zero == 0;
  for (int t = 0; t < 16; t++) valid = valid && config.rows[t] <= (t < 8 ? 16 : 0) && config.bytes[t] <= (t < 8 ? 64 : 0);
  if (!valid) return false;
  if (!registers.configured) in_use++;
  registers.configured = true;
  registers.config = config;
  memset(registers.tile, 0, sizeof registers.tile);
  return true;
}

void release() {
  if (registers.configured) in_use--;
  registers.configured = false;
}

float as_float(uint16_t half) {
  const uint32_t bits = (uint32_t)half << 16;
  float f;
  memcpy(&f, &bits, 4);
  return f;
}

void multiply(int sum, int left, int right) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(0x9fc0);  // round to nearest, no exceptions, flush denormal operands and results
  const int columns = registers.config.bytes[sum] / 4;
  const bool wrong = strcmp(mode, "wrong") == 0 || (strcmp(mode, "late") == 0 && products >= 8);
  for (int m = 0; m < registers.config.rows[sum]; m++) {
    float even[16] = {}, odd[16] = {}, c[16];
    uint16_t a[32], b[32];
    memcpy(a, registers.tile[left][m], 64);
    for (int k = 0; k < registers.config.bytes[left] / 4; k++) {
      memcpy(b, registers.tile[right][k], 64);
      const float first = as_float(a[2 * k]), second = as_float(a[2 * k + 1]);
      for (int n = 0; n < columns; n++) {
        even[n] = __builtin_fmaf(first, as_float(b[2 * n]), even[n]);
        odd[n] = __builtin_fmaf(second, as_float(b[2 * n + 1]), odd[n]);
      }
    }
    memcpy(c, registers.tile[sum][m], 64);
    for (int n = 0; n < columns; n++) c[n] = wrong ? c[n] + even[n] + odd[n] : c[n] + (even[n] + odd[n]);
    memcpy(registers.tile[sum][m], c, 64);
  }
  products++;
  _mm_setcsr(before);
}

// Returns whether it was a tile instruction, with what it needs.
bool emulate(const Instruction& i) {
  enum { NONE, P66, PF3, PF2 };  // pp of the prefix
  if (i.opcode == 0x49 && i.prefix == NONE) {
    if (i.memory) return configure(*(const Configuration*)(i.base + i.stride));  // ldtilecfg
    return i.reg == 0 && i.rm == 0 ? release(), true : false;                    // tilerelease
  }
  if (!registers.configured) return false;
  if (i.opcode == 0x49 && i.prefix == PF2 && !i.memory) {  // tilezero
    memset(registers.tile[i.reg], 0, sizeof registers.tile[i.reg]);
    return true;
  }
  if (i.opcode == 0x4b && i.memory && (i.prefix == PF2 || i.prefix == PF3)) {  // tileloadd, tilestored
    for (int row = 0; row < registers.config.rows[i.reg]; row++) {
      uint8_t* here = registers.tile[i.reg][row];
      void* there = (void*)(i.base + (uint64_t)row * i.stride);
      const size_t bytes = registers.config.bytes[i.reg];
      if (i.prefix == PF3) memcpy(there, here, bytes);
      else memcpy(here, there, bytes);
    }
    return true;
  }
  if (i.opcode != 0x5c || i.prefix != PF3 || i.memory || i.third > 7) return false;
  multiply(i.reg, i.rm, i.third);
  return true;
}

using Action = struct sigaction;
using Sigaction = int (*)(int, const Action*, Action*);
Sigaction real_sigaction() {
  static const Sigaction found = (Sigaction)dlsym(RTLD_NEXT, "sigaction");
  return found;
}
Action other = {};  // of the program, for SIGILL

void handle(int number, siginfo_t* info, void* context) {
  ucontext_t* c = (ucontext_t*)context;
  Instruction i;
  if (strcmp(mode, "illegal") != 0 && decode(c, i) && emulate(i)) {
    c->uc_mcontext.gregs[REG_RIP] += i.length;
    return;
  }
  if (other.sa_flags & SA_SIGINFO) return other.sa_sigaction(number, info, context);
  if (other.sa_handler != SIG_DFL && other.sa_handler != SIG_IGN) return other.sa_handler(number);
  Action end = {};
  end.sa_handler = SIG_DFL;
  real_sigaction()(SIGILL, &end, nullptr);  // and the instruction is run again
}

__attribute__((constructor)) void install() {
  if (const char* named = getenv("UNSPOOL_EMULATOR")) mode = named;
  Action own = {};
  own.sa_sigaction = handle;
  own.sa_flags = SA_SIGINFO | SA_NODEFER;
  real_sigaction()(SIGILL, &own, nullptr);
}

}  // namespace

extern "C" {

bool unspool_emulates_tiles() { return true; }
long emulator_requested() { return requested; }  // how often the system was asked for tiles
long emulator_in_use() { return in_use; }        // threads that have configured tiles
long emulator_products() { return products; }    // tile products computed

int sigaction(int number, const Action* action, Action* before) {
  if (number != SIGILL) return real_sigaction()(number, action, before);
  const Action was = other;
  if (action) other = *action;
  if (before) *before = was;
  return 0;
}

long syscall(long number, ...) {
  va_list given;
  va_start(given, number);
  long a[6];
  for (long& each : a) each = va_arg(given, long);
  va_end(given);
  if (number == SYS_arch_prctl && a[0] == 0x1021) return *(uint64_t*)a[1] = 0x60000, 0;
  if (number == SYS_arch_prctl && a[0] == 0x1023) {
    requested++;
    if (strcmp(mode, "refused") != 0) return 0;
    errno = EPERM;
    return -1;
  }
  if (number == SYS_clone && strcmp(mode, "unforked") == 0) {
    errno = EAGAIN;
    return -1;
  }
  long result;
  register long r10 asm("r10") = a[3];
  register long r8 asm("r8") = a[4];
  register long r9 asm("r9") = a[5];
  asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  if (result >= 0 || result < -4095) return result;
  errno = (int)-result;
  return -1;
}

}  // extern "C"
