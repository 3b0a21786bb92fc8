// Interpose the I/O calls of libc (LD_PRELOAD) and let the n-th one that concerns a folder fail with a given error.
//
//     faults_arm("/tmp/x", 12, EIO)    the 12th call on a path or descriptor below /tmp/x fails; 0: only count
//     faults_count(), faults_name()    how many calls there were, and which one failed
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[4096];
static const char *failed = "";
static long fail_at, count;
static int armed, number;
static unsigned char below[65536];  // descriptors opened below the folder

void faults_arm(const char *path, long at, int error) {
    strncpy(folder, path, sizeof folder - 1);
    fail_at = at, number = error, count = 0, failed = "", armed = 1;
}
long faults_count(void) { return armed = 0, count; }
const char *faults_name(void) { return failed; }

static int is_path(const char *path) {
    return armed && path != NULL && strncmp(path, folder, strlen(folder)) == 0;
}
static int is_open(int fd) { return armed && fd >= 0 && fd < (int)sizeof below && below[fd]; }
static int mark(int fd, int ours) {
    if (fd >= 0 && fd < (int)sizeof below) below[fd] = (unsigned char)ours;
    return fd;
}
static int fails(int concerned, const char *name) {
    if (!concerned || __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST) != fail_at) return 0;
    failed = name, errno = number;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define ON_PATH(result, name, given, passed, path)            \
    result name given {                                       \
        return fails(is_path(path), #name) ? -1 : REAL(name) passed; \
    }
#define ON_PATH_AT(result, name, given, passed, fd, path)                    \
    result name given {                                                      \
        return fails(is_path(path) || is_open(fd), #name) ? -1 : REAL(name) passed; \
    }
#define ON_FILE(result, name, given, passed)                  \
    result name given {                                       \
        return fails(is_open(fd), #name) ? -1 : REAL(name) passed; \
    }
#define OPEN(name)                                                               \
    int name(const char *path, int flags, ...) {                                 \
        va_list more;                                                            \
        va_start(more, flags);                                                   \
        mode_t mode = (mode_t)va_arg(more, int);                                 \
        va_end(more);                                                            \
        if (fails(is_path(path), "open")) return -1;                             \
        return mark(REAL(name)(path, flags, mode), is_path(path));               \
    }
#define OPEN_AT(name)                                                            \
    int name(int fd, const char *path, int flags, ...) {                         \
        va_list more;                                                            \
        va_start(more, flags);                                                   \
        mode_t mode = (mode_t)va_arg(more, int);                                 \
        va_end(more);                                                            \
        int ours = is_path(path) || is_open(fd);                                 \
        if (fails(ours, "openat")) return -1;                                    \
        return mark(REAL(name)(fd, path, flags, mode), ours);                    \
    }

OPEN(open)
OPEN(open64)
OPEN_AT(openat)
OPEN_AT(openat64)
ON_FILE(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n))
ON_FILE(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n))
ON_FILE(int, fsync, (int fd), (fd))
ON_FILE(int, ftruncate, (int fd, off_t n), (fd, n))
ON_FILE(int, ftruncate64, (int fd, off64_t n), (fd, n))
ON_FILE(int, flock, (int fd, int how), (fd, how))
ON_PATH(int, mkdir, (const char *path, mode_t mode), (path, mode), path)
ON_PATH(int, rmdir, (const char *path), (path), path)
ON_PATH(int, unlink, (const char *path), (path), path)
ON_PATH(int, chmod, (const char *path, mode_t mode), (path, mode), path)
ON_PATH(int, rename, (const char *from, const char *to), (from, to), to)
ON_PATH(int, link, (const char *from, const char *to), (from, to), to)
ON_PATH_AT(int, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode), fd, path)
ON_PATH_AT(int, unlinkat, (int fd, const char *path, int how), (fd, path, how), fd, path)
ON_PATH_AT(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), b, to)
ON_PATH_AT(int, linkat, (int a, const char *from, int b, const char *to, int how), (a, from, b, to, how), b, to)

int flock(int fd, int how);

int dup(int fd) { return mark(REAL(dup)(fd), is_open(fd)); }

int close(int fd) {
    int fault = fails(is_open(fd), "close");  // the descriptor is closed all the same, as Linux does
    mark(fd, 0);
    int done = REAL(close)(fd);
    if (fault) errno = number;
    return fault ? -1 : done;
}

size_t fwrite(const void *from, size_t size, size_t n, FILE *file) {
    return fails(is_open(fileno(file)), "fwrite") ? 0 : REAL(fwrite)(from, size, n, file);
}
