/* Preloaded library: lets calls that read below a directory fail, those of C libraries too.

   Counted are open for reading, read, stat, opendir, readdir and mmap of paths below the directory that shim_arm was
   given.  The calls of numbers at .. at + times - 1 (times < 0: all from `at` on) fail with an errno. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char root[PATH_MAX];
static size_t length;
static long first, many;
static int number;
static atomic_long count;

void shim_arm(const char *directory, long at, long times, int error) {
    length = 0;
    strncpy(root, directory, sizeof root - 1);
    first = at, many = times, number = error, count = 0;
    length = strlen(root);
}
long shim_count(void) { return count; }

static int below(const char *path) {
    return length && !strncmp(path, root, length) && (path[length] == '/' || !path[length]);
}

static int fails(void) {
    long at = ++count;
    if (!first || at < first || (many >= 0 && at >= first + many)) return 0;
    errno = number;
    return 1;
}

static int path_fails(int folder, const char *path) {
    char whole[2 * PATH_MAX] = "";
    int held, rest = 0;
    if (!length || !path) return 0;
    if (sscanf(path, "/proc/%*[^/]/fd/%d%n", &held, &rest) == 1 && path[rest] == '/')
        folder = held, path += rest + 1; /* below a directory that is held open */
    if (path[0] != '/') {
        char link[64];
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        long size = syscall(SYS_readlink, link, whole, PATH_MAX);
        if (size < 0) return 0;
        whole[size] = 0;
        if (path[0]) strcat(whole, "/");
    }
    strncat(whole, path, PATH_MAX);
    return below(whole) && fails();
}

static int file_fails(int file) {
    if (!length || file < 3) return 0;
    int before = errno, failed = path_fails(file, "");
    if (!failed) errno = before;
    return failed;
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name)
#define MODE mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list l; va_start(l, flags); mode = va_arg(l, mode_t); va_end(l); }
#define READS ((flags & O_ACCMODE) == O_RDONLY && !(flags & O_CREAT))

int open(const char *path, int flags, ...) { MODE REAL(open); return READS && path_fails(AT_FDCWD, path) ? -1 : real(path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE REAL(open64); return READS && path_fails(AT_FDCWD, path) ? -1 : real(path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE REAL(openat); return READS && path_fails(at, path) ? -1 : real(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE REAL(openat64); return READS && path_fails(at, path) ? -1 : real(at, path, flags, mode); }
FILE *fopen(const char *path, const char *mode) { REAL(fopen); return mode[0] == 'r' && path_fails(AT_FDCWD, path) ? NULL : real(path, mode); }
FILE *fopen64(const char *path, const char *mode) { REAL(fopen64); return mode[0] == 'r' && path_fails(AT_FDCWD, path) ? NULL : real(path, mode); }
ssize_t read(int f, void *b, size_t n) { REAL(read); return file_fails(f) ? -1 : real(f, b, n); }
ssize_t pread(int f, void *b, size_t n, off_t o) { REAL(pread); return file_fails(f) ? -1 : real(f, b, n, o); }
ssize_t pread64(int f, void *b, size_t n, off64_t o) { REAL(pread64); return file_fails(f) ? -1 : real(f, b, n, o); }
ssize_t readv(int f, const struct iovec *v, int n) { REAL(readv); return file_fails(f) ? -1 : real(f, v, n); }
ssize_t preadv(int f, const struct iovec *v, int n, off_t o) { REAL(preadv); return file_fails(f) ? -1 : real(f, v, n, o); }
ssize_t preadv64(int f, const struct iovec *v, int n, off64_t o) { REAL(preadv64); return file_fails(f) ? -1 : real(f, v, n, o); }
ssize_t preadv2(int f, const struct iovec *v, int n, off_t o, int g) { REAL(preadv2); return file_fails(f) ? -1 : real(f, v, n, o, g); }
ssize_t preadv64v2(int f, const struct iovec *v, int n, off64_t o, int g) { REAL(preadv64v2); return file_fails(f) ? -1 : real(f, v, n, o, g); }
ssize_t readlink(const char *path, char *b, size_t n) { REAL(readlink); return path_fails(AT_FDCWD, path) ? -1 : real(path, b, n); }
int stat(const char *path, struct stat *s) { REAL(stat); return path_fails(AT_FDCWD, path) ? -1 : real(path, s); }
int lstat(const char *path, struct stat *s) { REAL(lstat); return path_fails(AT_FDCWD, path) ? -1 : real(path, s); }
int fstat(int f, struct stat *s) { REAL(fstat); return file_fails(f) ? -1 : real(f, s); }
int fstatat(int at, const char *path, struct stat *s, int g) { REAL(fstatat); return path_fails(at, path) ? -1 : real(at, path, s, g); }
int stat64(const char *path, struct stat64 *s) { REAL(stat64); return path_fails(AT_FDCWD, path) ? -1 : real(path, s); }
int lstat64(const char *path, struct stat64 *s) { REAL(lstat64); return path_fails(AT_FDCWD, path) ? -1 : real(path, s); }
int fstat64(int f, struct stat64 *s) { REAL(fstat64); return file_fails(f) ? -1 : real(f, s); }
int fstatat64(int at, const char *path, struct stat64 *s, int g) { REAL(fstatat64); return path_fails(at, path) ? -1 : real(at, path, s, g); }
DIR *opendir(const char *path) { REAL(opendir); return path_fails(AT_FDCWD, path) ? NULL : real(path); }
DIR *fdopendir(int f) { REAL(fdopendir); return file_fails(f) ? NULL : real(f); }
struct dirent *readdir(DIR *d) { REAL(readdir); return file_fails(dirfd(d)) ? NULL : real(d); }
struct dirent64 *readdir64(DIR *d) { REAL(readdir64); return file_fails(dirfd(d)) ? NULL : real(d); }
void *mmap(void *a, size_t n, int p, int g, int f, off_t o) { REAL(mmap); return f >= 0 && file_fails(f) ? MAP_FAILED : real(a, n, p, g, f, o); }
void *mmap64(void *a, size_t n, int p, int g, int f, off64_t o) { REAL(mmap64); return f >= 0 && file_fails(f) ? MAP_FAILED : real(a, n, p, g, f, o); }

/* Programs that were linked with an old C library. */
int __xstat(int v, const char *path, struct stat *s) { REAL(__xstat); return path_fails(AT_FDCWD, path) ? -1 : real(v, path, s); }
int __lxstat(int v, const char *path, struct stat *s) { REAL(__lxstat); return path_fails(AT_FDCWD, path) ? -1 : real(v, path, s); }
int __fxstat(int v, int f, struct stat *s) { REAL(__fxstat); return file_fails(f) ? -1 : real(v, f, s); }
int __xstat64(int v, const char *path, struct stat64 *s) { REAL(__xstat64); return path_fails(AT_FDCWD, path) ? -1 : real(v, path, s); }
int __lxstat64(int v, const char *path, struct stat64 *s) { REAL(__lxstat64); return path_fails(AT_FDCWD, path) ? -1 : real(v, path, s); }
int __fxstat64(int v, int f, struct stat64 *s) { REAL(__fxstat64); return file_fails(f) ? -1 : real(v, f, s); }
