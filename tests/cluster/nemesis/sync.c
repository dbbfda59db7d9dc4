/* One sync of a replica's log fails when a file says so; that the file is gone says that it did. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int fd) {
    char link[64], path[4096] = "";
    const char *order = getenv("FAIL_SYNC");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return order && readlink(link, path, sizeof path - 1) > 0 && strstr(path, ".redb") && unlink(order) == 0;
}

#define SYNC(name) \
    int name(int fd) { \
        int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, #name); \
        if (!fails(fd)) return real(fd); \
        errno = EIO; \
        return -1; \
    }

SYNC(fsync)
SYNC(fdatasync)
