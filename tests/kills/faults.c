/* Faults in calls that change files, for a process that loads this library first (LD_PRELOAD).

   Nothing happens until faults_arm() is called. From then on every call that changes a file below a folder is counted,
   in all threads. At the one of a given number the process is killed before it happens, or when half of its bytes are
   written, or the call fails; and those behind it, too, if they need room and the disk shall be full from there on.
   Whenever a file is brought to the disk a copy of it can be kept, so that a power cut can be played afterwards. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum how { NONE, KILL, TEAR, FULL, EIO_ONCE };
enum need { NO_ROOM, ROOM };

static char root[PATH_MAX], disk[PATH_MAX];
static size_t root_length;
static int armed, how, log_file = -1;
static long at;
static atomic_long count;

/* Counts calls below `folder`; at call number `number` does `what`. `names` is a file for the calls' names, `kept` a
   folder for copies of what is brought to the disk; either may be empty. */
void faults_arm(const char *folder, long number, int what, const char *names, const char *kept) {
    snprintf(root, sizeof root, "%s/", folder);
    root_length = strlen(root);
    snprintf(disk, sizeof disk, "%s", kept);
    if (*names) log_file = syscall(SYS_openat, AT_FDCWD, names, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    at = number;
    how = what;
    atomic_store(&count, 0);
    armed = 1;
}

static void die(void) {
    for (;;) syscall(SYS_kill, getpid(), SIGKILL);
}

static int below(const char *path, char *full) {
    char here[PATH_MAX];
    if (!armed || !path) return 0;
    if (path[0] == '/') snprintf(full, PATH_MAX, "%s", path);
    else if (getcwd(here, sizeof here)) snprintf(full, PATH_MAX, "%.2000s/%.2000s", here, path);
    else return 0;
    return strncmp(full, root, root_length) == 0 || (strncmp(full, root, root_length - 1) == 0 && !full[root_length - 1]);
}

static int open_below(int file, char *full) {
    char name[40];
    if (!armed) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    ssize_t length = syscall(SYS_readlink, name, full, PATH_MAX - 1);
    if (length <= 0) return 0;
    full[length] = 0;
    return strncmp(full, root, root_length) == 0;
}

/* Where a name relative to an open folder leads. */
static int at_below(int folder, const char *path, char *full) {
    char base[PATH_MAX], joined[PATH_MAX];
    if (!armed || !path) return 0;
    if (path[0] == '/' || folder == AT_FDCWD) return below(path, full);
    snprintf(joined, sizeof joined, "/proc/self/fd/%d", folder);
    ssize_t length = syscall(SYS_readlink, joined, base, sizeof base - 1);
    if (length <= 0) return 0;
    base[length] = 0;
    snprintf(joined, sizeof joined, "%.2000s/%.2000s", base, path);
    return below(joined, full);
}

/* 0: go on; 1: the call fails, errno is set; 2: write half, then die. */
static int fault(const char *call, const char *path, enum need need, int writes) {
    int kept = errno;
    long number = atomic_fetch_add(&count, 1) + 1;
    if (log_file >= 0) {
        char line[PATH_MAX + 64];
        int length = snprintf(line, sizeof line, "%s\t%s\n", call, path + root_length - 1);
        syscall(SYS_write, log_file, line, length);
    }
    errno = kept;
    if (number == at && how == KILL) die();
    if (number == at && how == TEAR) {
        if (writes) return 2;
        die();
    }
    if (number == at && how == EIO_ONCE) return errno = EIO, 1;
    if (number >= at && how == FULL && need == ROOM) return errno = ENOSPC, 1;
    return 0;
}

static void keep(int file) {
    struct stat facts;
    char name[PATH_MAX + 32], buffer[1 << 16];
    int kept = errno;
    if (!disk[0] || fstat(file, &facts) || !S_ISREG(facts.st_mode)) return;
    snprintf(name, sizeof name, "%s/%lu", disk, (unsigned long)facts.st_ino);
    int out = syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    int in = syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC, 0);
    for (long n; in >= 0 && out >= 0 && (n = syscall(SYS_read, in, buffer, sizeof buffer)) > 0;)
        syscall(SYS_write, out, buffer, n);
    if (in >= 0) syscall(SYS_close, in);
    if (out >= 0) syscall(SYS_close, out);
    errno = kept;
}

#define NEXT(name) \
    static __typeof__(&name) next; \
    if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* Calls that write `size` bytes; HALF writes the first half. */
#define WRITING(type, name, parameters, file, size, WHOLE, HALF) \
    type name parameters { \
        NEXT(name); \
        char path[PATH_MAX]; \
        if (open_below(file, path)) { \
            int what = fault(#name, path, ROOM, (size) > 1); \
            if (what == 1) return -1; \
            if (what == 2) { HALF; die(); } \
        } \
        return WHOLE; \
    }

WRITING(ssize_t, write, (int f, const void *b, size_t n), f, n, next(f, b, n), next(f, b, n / 2))
WRITING(ssize_t, pwrite, (int f, const void *b, size_t n, off_t o), f, n, next(f, b, n, o), next(f, b, n / 2, o))
WRITING(ssize_t, pwrite64, (int f, const void *b, size_t n, off64_t o), f, n, next(f, b, n, o), next(f, b, n / 2, o))
WRITING(ssize_t, writev, (int f, const struct iovec *v, int n), f, n, next(f, v, n), next(f, v, n / 2))
WRITING(ssize_t, pwritev, (int f, const struct iovec *v, int n, off_t o), f, n, next(f, v, n, o), next(f, v, n / 2, o))
WRITING(ssize_t, copy_file_range, (int g, off64_t *p, int f, off64_t *o, size_t n, unsigned x), f, n,
        next(g, p, f, o, n, x), next(g, p, f, o, n / 2, x))

#define ON_FILE(name, parameters, file, need, CALL) \
    int name parameters { \
        NEXT(name); \
        char path[PATH_MAX]; \
        if (open_below(file, path) && fault(#name, path, need, 0)) return -1; \
        return CALL; \
    }

ON_FILE(ftruncate, (int f, off_t n), f, NO_ROOM, next(f, n))
ON_FILE(ftruncate64, (int f, off64_t n), f, NO_ROOM, next(f, n))
ON_FILE(fallocate, (int f, int m, off_t o, off_t n), f, ROOM, next(f, m, o, n))
ON_FILE(fallocate64, (int f, int m, off64_t o, off64_t n), f, ROOM, next(f, m, o, n))
ON_FILE(fchmod, (int f, mode_t m), f, NO_ROOM, next(f, m))

#define SYNCING(name) \
    int name(int f) { \
        NEXT(name); \
        char path[PATH_MAX]; \
        int mine = open_below(f, path); \
        if (mine && fault(#name, path, NO_ROOM, 0)) return -1; \
        int status = next(f); \
        if (mine && !status) keep(f); \
        return status; \
    }

SYNCING(fsync)
SYNCING(fdatasync)

#define ON_NAME(name, parameters, FOUND, need, CALL) \
    int name parameters { \
        NEXT(name); \
        char path[PATH_MAX]; \
        if (FOUND && fault(#name, path, need, 0)) return -1; \
        return CALL; \
    }

ON_NAME(rename, (const char *a, const char *b), below(b, path), NO_ROOM, next(a, b))
ON_NAME(renameat, (int d, const char *a, int e, const char *b), at_below(e, b, path), NO_ROOM, next(d, a, e, b))
ON_NAME(link, (const char *a, const char *b), below(b, path), ROOM, next(a, b))
ON_NAME(linkat, (int d, const char *a, int e, const char *b, int x), at_below(e, b, path), ROOM, next(d, a, e, b, x))
ON_NAME(symlink, (const char *a, const char *b), below(b, path), ROOM, next(a, b))
ON_NAME(unlink, (const char *a), below(a, path), NO_ROOM, next(a))
ON_NAME(unlinkat, (int d, const char *a, int x), at_below(d, a, path), NO_ROOM, next(d, a, x))
ON_NAME(remove, (const char *a), below(a, path), NO_ROOM, next(a))
ON_NAME(mkdir, (const char *a, mode_t m), below(a, path), ROOM, next(a, m))
ON_NAME(mkdirat, (int d, const char *a, mode_t m), at_below(d, a, path), ROOM, next(d, a, m))
ON_NAME(rmdir, (const char *a), below(a, path), NO_ROOM, next(a))
ON_NAME(truncate, (const char *a, off_t n), below(a, path), NO_ROOM, next(a, n))
ON_NAME(chmod, (const char *a, mode_t m), below(a, path), NO_ROOM, next(a, m))

#define MAKES(flags) ((flags) & (O_CREAT | O_TRUNC) || ((flags) & O_TMPFILE) == O_TMPFILE)

#define OPENING(name, parameters, last, FOUND, CALL) \
    int name parameters { \
        NEXT(name); \
        char path[PATH_MAX]; \
        mode_t mode = 0; \
        if (last & O_CREAT || (last & O_TMPFILE) == O_TMPFILE) { \
            va_list more; \
            va_start(more, last); \
            mode = va_arg(more, mode_t); \
            va_end(more); \
        } \
        if (MAKES(last) && FOUND && fault(#name, path, ROOM, 0)) return -1; \
        return CALL; \
    }

OPENING(open, (const char *a, int flags, ...), flags, below(a, path), next(a, flags, mode))
OPENING(open64, (const char *a, int flags, ...), flags, below(a, path), next(a, flags, mode))
OPENING(openat, (int d, const char *a, int flags, ...), flags, at_below(d, a, path), next(d, a, flags, mode))
OPENING(openat64, (int d, const char *a, int flags, ...), flags, at_below(d, a, path), next(d, a, flags, mode))
