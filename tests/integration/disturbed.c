/* Preloaded into a process: disturbs one of its writes to files under a folder.

   DISTURB_FOLDER  the folder (absolute)
   DISTURB_AT      number of the write that is disturbed, from 1; 0 for none
   DISTURB_HOW     "torn": half of the bytes are written and the process is killed
                   "full": this write and all after it fail as on a full disk
                   "fails": this write fails once with an I/O error
   DISTURB_COUNT   file that gets a byte for every write that is counted */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long writes;

static int of_folder(int file) {
    const char *folder = getenv("DISTURB_FOLDER");
    char name[64], path[PATH_MAX];
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    ssize_t length = readlink(name, path, sizeof path - 1);
    if (!folder || length <= 0) return 0;
    path[length] = 0;
    return strncmp(path, folder, strlen(folder)) == 0;
}

static void count(void) {
    const char *path = getenv("DISTURB_COUNT");
    if (!path) return;
    int file = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file >= 0) {
        syscall(SYS_write, file, "x", 1);
        syscall(SYS_close, file);
    }
}

/* The bytes that may be written before the process is killed; -1 where the write fails; else as many as were asked. */
static ssize_t allowed(int file, size_t size) {
    const char *at = getenv("DISTURB_AT"), *how = getenv("DISTURB_HOW");
    if (!of_folder(file)) return size;
    count();
    long number = __sync_add_and_fetch(&writes, 1);
    if (!at || !how || !atol(at)) return size;
    if (!strcmp(how, "full") && number >= atol(at)) { errno = ENOSPC; return -1; }
    if (number != atol(at)) return size;
    if (!strcmp(how, "fails")) { errno = EIO; return -1; }
    return strcmp(how, "torn") ? (ssize_t)size : (ssize_t)(size / 2);
}

static void end(void) { syscall(SYS_kill, getpid(), SIGKILL); }

ssize_t write(int file, const void *bytes, size_t size) {
    ssize_t may = allowed(file, size);
    if (may < 0) return -1;
    ssize_t done = syscall(SYS_write, file, bytes, may);
    if ((size_t)may < size) end();
    return done;
}

ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t place) {
    ssize_t may = allowed(file, size);
    if (may < 0) return -1;
    ssize_t done = syscall(SYS_pwrite64, file, bytes, may, place);
    if ((size_t)may < size) end();
    return done;
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t place) { return pwrite64(file, bytes, size, place); }
