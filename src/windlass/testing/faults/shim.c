/* Preloaded into Windlass and the git it starts. It counts every call that changes a file below one
 * folder; at the n-th the whole process group dies or the call fails, as a control file says.
 *
 * Law: one count for all processes (each maps the control file), one point before every call, and
 * one more in the middle of every write. Calls elsewhere are ignored. A child of vfork allocates
 * nothing.
 *
 * In mode LOG it also logs the calls in order, with the content of each file at each sync. disk.py
 * computes from the log what a power loss would leave. Writes of glibc's own stdio are not seen
 * until the file is closed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

extern char **environ;

enum { COUNT = 0, KILL = 1, FAIL = 2, FAIL_ON = 3, LOG = 4, KILL_ONE = 5 };

struct control { /* shim.py knows this layout */
    _Atomic uint64_t count;
    uint64_t at;
    uint32_t mode;
    int32_t error;
    int32_t group;
    _Atomic uint32_t busy;
    _Atomic uint64_t fired; /* how many calls failed, or 1 after a kill */
    char what[64];          /* the first call that was hit */
    char where[PATH_MAX];   /* its path */
    char root[PATH_MAX];
    char log[PATH_MAX];
};

static struct control *control;
static char control_path[PATH_MAX];
static char library_path[PATH_MAX];
static size_t root_length;
static int log_fd = -1;

#define REAL(type, name, ...)                                                                      \
    static type (*real_##name)(__VA_ARGS__);                                                       \
    if (real_##name == NULL) real_##name = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

static int real_open(const char *path, int flags, mode_t mode) {
    REAL(int, open64, const char *, int, ...);
    return real_open64(path, flags, mode);
}

static ssize_t real_out(int fd, const void *data, size_t size) {
    REAL(ssize_t, write, int, const void *, size_t);
    return real_write(fd, data, size);
}

/* Attach this process. Children of the fork server call this; git is attached by its environment. */
int windlass_shim_attach(const char *path) {
    int fd = real_open(path, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0) return -1;
    void *mapped = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped == MAP_FAILED) return -1;
    control = mapped;
    root_length = strlen(control->root);
    snprintf(control_path, sizeof control_path, "%s", path);
    Dl_info info;
    if (dladdr((void *)&windlass_shim_attach, &info) && info.dli_fname)
        snprintf(library_path, sizeof library_path, "%s", info.dli_fname);
    log_fd = -1;
    dlsym(RTLD_NEXT, "execve"); /* resolved here, so that a child of vfork need not */
    if (control->mode == LOG)
        log_fd = real_open(control->log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    return 0;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("WINDLASS_SHIM");
    if (path != NULL && *path) windlass_shim_attach(path);
}

/* ---- where a call goes ---- */

static int is_inside(const char *path) {
    return control != NULL && strncmp(path, control->root, root_length) == 0 &&
           (path[root_length] == '/' || path[root_length] == 0);
}

static int path_of(int fd, char *out) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, out, PATH_MAX - 1);
    out[size < 0 ? 0 : size] = 0;
    return size > 0;
}

/* The absolute path, with links in the folders above it resolved. */
static int absolute(int dir, const char *path, char *out) {
    char joined[PATH_MAX], folder[PATH_MAX];
    if (path == NULL) return 0;
    if (path[0] == '/') {
        if ((size_t)snprintf(joined, sizeof joined, "%s", path) >= sizeof joined) return 0;
    } else {
        if (dir == AT_FDCWD ? getcwd(folder, sizeof folder) == NULL : !path_of(dir, folder)) return 0;
        if ((size_t)snprintf(joined, sizeof joined, "%s/%s", folder, path) >= sizeof joined) return 0;
    }
    size_t size = strlen(joined);
    while (size > 1 && joined[size - 1] == '/') joined[--size] = 0;
    char *slash = strrchr(joined, '/');
    if (slash == NULL) return 0;
    *slash = 0;
    if (realpath(*joined ? joined : "/", out) == NULL) return 0;
    size = strlen(out);
    return (size_t)snprintf(out + size, PATH_MAX - size, "/%s", slash + 1) < PATH_MAX - size;
}

static int inside_at(int dir, const char *path, char *out) {
    if (control == NULL) return 0;
    int kept = errno, inside = absolute(dir, path, out) && is_inside(out);
    errno = kept;
    return inside;
}

static int inside_fd(int fd, char *out) {
    if (control == NULL) return 0;
    int kept = errno, inside = path_of(fd, out) && is_inside(out);
    errno = kept;
    return inside;
}

/* ---- faults and the log ---- */

static void enter(void) {
    if (control->mode != LOG) return;
    uint32_t unlocked = 0;
    while (!atomic_compare_exchange_weak(&control->busy, &unlocked, 1)) {
        unlocked = 0;
        sched_yield();
    }
}

static void leave(void) {
    if (control->mode == LOG) atomic_store(&control->busy, 0);
}

/* Count the call; whether a fault hits it. */
static int is_hit(void) {
    uint64_t n = atomic_fetch_add(&control->count, 1) + 1;
    if (control->mode == COUNT || control->mode == LOG || control->at == 0) return 0;
    return n == control->at || (control->mode == FAIL_ON && n > control->at);
}

/* Kill, or return the error number to fail with. */
static int act(const char *what, const char *where) {
    if (atomic_fetch_add(&control->fired, 1) == 0) {
        snprintf(control->what, sizeof control->what, "%s", what);
        snprintf(control->where, sizeof control->where, "%s", where);
    }
    if (control->mode == KILL || control->mode == KILL_ONE) {
        if (control->mode == KILL) kill(-control->group, SIGKILL);
        for (;;) kill(getpid(), SIGKILL); /* it may be of another group */
    }
    return control->error;
}

/* Count the call; returns 0, or the error number that it must fail with. */
static int point(const char *what, const char *where) { return is_hit() ? act(what, where) : 0; }

static uint64_t say(const char *what, const char *a, const char *b) {
    if (control->mode != LOG) return 0;
    int kept = errno;
    char line[2 * PATH_MAX + 64];
    uint64_t n = atomic_fetch_add(&control->fired, 1) + 1;
    int size = snprintf(line, sizeof line, "%lu\t%s\t%s\t%s\n", (unsigned long)n, what, a, b ? b : "");
    real_out(log_fd, line, (size_t)size < sizeof line ? (size_t)size : sizeof line - 1);
    errno = kept;
    return n;
}

/* Log the call, and copy the file beside the log, under the number of the line. */
static void keep(const char *what, const char *path) {
    if (control->mode != LOG) return;
    int kept = errno;
    char copy[PATH_MAX + 32], buffer[65536];
    uint64_t n = say(what, path, NULL);
    snprintf(copy, sizeof copy, "%s.%lu", control->log, (unsigned long)n);
    int from = real_open(path, O_RDONLY | O_CLOEXEC, 0);
    int to = from < 0 ? -1 : real_open(copy, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ssize_t size;
    while (to >= 0 && (size = read(from, buffer, sizeof buffer)) > 0) real_out(to, buffer, (size_t)size);
    if (to >= 0) close(to);
    if (from >= 0) close(from);
    errno = kept;
}

/* Called by the rehearsed program itself: adds a line to the log, in order with the calls. */
void windlass_shim_note(const char *text) {
    if (control == NULL || control->mode != LOG) return;
    enter();
    say("note", text, NULL);
    leave();
}

#define FAILS(what, where)                                                                         \
    do {                                                                                           \
        int wrong = point(what, where);                                                            \
        if (wrong) {                                                                               \
            errno = wrong;                                                                         \
            return -1;                                                                             \
        }                                                                                          \
    } while (0)

/* ---- opening ---- */

static int opened(const char *name, int dir, const char *path, int flags, mode_t mode,
                  int (*go)(int, const char *, int, mode_t)) {
    char where[PATH_MAX];
    if (!(flags & (O_CREAT | O_TRUNC)) || (flags & O_TMPFILE) == O_TMPFILE ||
        !inside_at(dir, path, where))
        return go(dir, path, flags, mode);
    FAILS(name, where);
    enter();
    struct stat found;
    int kept = errno, there = lstat(where, &found) == 0;
    errno = kept;
    int fd = go(dir, path, flags, mode);
    if (fd >= 0) {
        char real[PATH_MAX];
        if (!path_of(fd, real)) strcpy(real, where);
        if (!there && (flags & O_CREAT)) say("create", real, NULL);
        else if (flags & O_TRUNC) say("write", real, NULL);
    }
    leave();
    return fd;
}

static mode_t mode_in(int flags, va_list more) {
    return (flags & (O_CREAT | O_TMPFILE)) ? (mode_t)va_arg(more, int) : 0;
}

static int go_open(int dir, const char *path, int flags, mode_t mode) {
    REAL(int, openat64, int, const char *, int, ...);
    return real_openat64(dir, path, flags, mode);
}

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...) {                                                   \
        va_list more;                                                                              \
        va_start(more, flags);                                                                     \
        mode_t mode = mode_in(flags, more);                                                        \
        va_end(more);                                                                              \
        return opened("open", AT_FDCWD, path, flags, mode, go_open);                               \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                               \
    int name(int dir, const char *path, int flags, ...) {                                          \
        va_list more;                                                                              \
        va_start(more, flags);                                                                     \
        mode_t mode = mode_in(flags, more);                                                        \
        va_end(more);                                                                              \
        return opened("open", dir, path, flags, mode, go_open);                                    \
    }
OPENAT(openat)
OPENAT(openat64)

int creat(const char *path, mode_t mode) {
    return opened("creat", AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode, go_open);
}

#define FOPEN(name)                                                                                \
    FILE *name(const char *path, const char *mode) {                                               \
        REAL(FILE *, name, const char *, const char *);                                            \
        char where[PATH_MAX];                                                                      \
        if (strpbrk(mode, "wa+") == NULL || !inside_at(AT_FDCWD, path, where))                     \
            return real_##name(path, mode);                                                        \
        int wrong = point("fopen", where);                                                         \
        if (wrong) {                                                                               \
            errno = wrong;                                                                         \
            return NULL;                                                                           \
        }                                                                                          \
        enter();                                                                                   \
        int there = access(where, F_OK) == 0;                                                      \
        FILE *file = real_##name(path, mode);                                                      \
        if (file != NULL) say(there ? "write" : "create", where, NULL);                            \
        leave();                                                                                   \
        return file;                                                                               \
    }
FOPEN(fopen)
FOPEN(fopen64)

int fclose(FILE *file) {
    REAL(int, fclose, FILE *);
    char where[PATH_MAX];
    int fd = fileno(file), flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || !inside_fd(fd, where)) return real_fclose(file);
    int wrong = point("fclose", where);
    enter();
    say("write", where, NULL);
    int done = real_fclose(file);
    leave();
    if (!wrong) return done;
    errno = wrong;
    return EOF;
}

/* ---- writing ---- */

/* The points before a write and in the middle of it; `size` is halved if the second is hit. */
static int written(const char *what, const char *where, size_t *size, int *half) {
    int wrong = point(what, where);
    if (wrong == 0 && (*half = is_hit())) *size = *size > 1 ? *size / 2 : *size;
    return wrong;
}

#define WRITE(name, call, ...)                                                                     \
    ssize_t name(__VA_ARGS__) {                                                                    \
        REAL(ssize_t, name, __VA_ARGS__);                                                          \
        char where[PATH_MAX];                                                                      \
        if (!inside_fd(fd, where)) return real_##name call;                                        \
        int half = 0, wrong = written(#name, where, &size, &half);                                 \
        if (wrong) {                                                                               \
            errno = wrong;                                                                         \
            return -1;                                                                             \
        }                                                                                          \
        enter();                                                                                   \
        ssize_t done = real_##name call;                                                           \
        say("write", where, NULL);                                                                 \
        leave();                                                                                   \
        if (half) act(#name " in half", where);                                                    \
        return done;                                                                               \
    }
WRITE(write, (fd, data, size), int fd, const void *data, size_t size)
WRITE(pwrite, (fd, data, size, at), int fd, const void *data, size_t size, off_t at)
WRITE(pwrite64, (fd, data, size, at), int fd, const void *data, size_t size, off64_t at)
WRITE(sendfile, (fd, from, at, size), int fd, int from, off_t *at, size_t size)
WRITE(sendfile64, (fd, from, at, size), int fd, int from, off64_t *at, size_t size)
WRITE(copy_file_range, (from, a, fd, b, size, flags), int from, off64_t *a, int fd, off64_t *b,
      size_t size, unsigned flags)

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, writev, int, const struct iovec *, int);
    char where[PATH_MAX];
    if (!inside_fd(fd, where)) return real_writev(fd, parts, count);
    FAILS("writev", where);
    enter();
    ssize_t done = real_writev(fd, parts, count);
    say("write", where, NULL);
    leave();
    return done;
}

/* ---- everything on an open file ---- */

#define ON_FILE(name, log, call, ...)                                                              \
    int name(__VA_ARGS__) {                                                                        \
        REAL(int, name, __VA_ARGS__);                                                              \
        char where[PATH_MAX];                                                                      \
        if (!inside_fd(fd, where)) return real_##name call;                                        \
        FAILS(#name, where);                                                                       \
        enter();                                                                                   \
        int done = real_##name call;                                                               \
        if (done == 0) log;                                                                        \
        leave();                                                                                   \
        return done;                                                                               \
    }
ON_FILE(ftruncate, say("write", where, NULL), (fd, size), int fd, off_t size)
ON_FILE(ftruncate64, say("write", where, NULL), (fd, size), int fd, off64_t size)
ON_FILE(fchmod, say("mode", where, NULL), (fd, mode), int fd, mode_t mode)
ON_FILE(fsync, keep("sync", where), (fd), int fd)
ON_FILE(fdatasync, keep("sync", where), (fd), int fd)
ON_FILE(sync_file_range, keep("range", where), (fd, at, size, flags), int fd, off64_t at,
        off64_t size, unsigned flags)

int syncfs(int fd) {
    REAL(int, syncfs, int);
    char where[PATH_MAX];
    if (!inside_fd(fd, where)) return real_syncfs(fd);
    FAILS("syncfs", where);
    enter();
    int done = real_syncfs(fd);
    if (done == 0) {
        /* Copy the whole folder with cp while the log is locked. A sandboxed agent is not locked
         * out: if it removes files meanwhile, the copy starts over. */
        int kept = errno;
        char order[4 * PATH_MAX];
        uint64_t n = say("all", where, NULL);
        if (n) {
            snprintf(order, sizeof order,
                     "export LD_PRELOAD=; for i in 1 2 3 4 5; do rm -rf '%s.%lu'; "
                     "cp -a '%s' '%s.%lu' 2>/dev/null && exit 0; done; exit 1",
                     control->log, (unsigned long)n, control->root, control->log,
                     (unsigned long)n);
            if (system(order) != 0) say("lost", where, NULL);
        }
        errno = kept;
    }
    leave();
    return done;
}

/* ---- names ---- */

#define NAMED(name, dir, path, log, call, ...)                                                     \
    int name(__VA_ARGS__) {                                                                        \
        REAL(int, name, __VA_ARGS__);                                                              \
        char where[PATH_MAX];                                                                      \
        if (!inside_at(dir, path, where)) return real_##name call;                                 \
        FAILS(#name, where);                                                                       \
        enter();                                                                                   \
        int done = real_##name call;                                                               \
        if (done == 0) log;                                                                        \
        leave();                                                                                   \
        return done;                                                                               \
    }
NAMED(unlink, AT_FDCWD, path, say("gone", where, NULL), (path), const char *path)
NAMED(unlinkat, dir, path, say("gone", where, NULL), (dir, path, flags), int dir, const char *path,
      int flags)
NAMED(rmdir, AT_FDCWD, path, say("gone", where, NULL), (path), const char *path)
NAMED(remove, AT_FDCWD, path, say("gone", where, NULL), (path), const char *path)
NAMED(mkdir, AT_FDCWD, path, say("mkdir", where, NULL), (path, mode), const char *path, mode_t mode)
NAMED(mkdirat, dir, path, say("mkdir", where, NULL), (dir, path, mode), int dir, const char *path,
      mode_t mode)
NAMED(symlink, AT_FDCWD, path, say("symlink", where, to), (to, path), const char *to,
      const char *path)
NAMED(symlinkat, dir, path, say("symlink", where, to), (to, dir, path), const char *to, int dir,
      const char *path)
NAMED(chmod, AT_FDCWD, path, say("mode", where, NULL), (path, mode), const char *path, mode_t mode)
NAMED(fchmodat, dir, path, say("mode", where, NULL), (dir, path, mode, flags), int dir,
      const char *path, mode_t mode, int flags)
NAMED(truncate, AT_FDCWD, path, say("write", where, NULL), (path, size), const char *path, off_t size)

char *mkdtemp(char *template) {
    REAL(char *, mkdtemp, char *);
    char where[PATH_MAX];
    if (!inside_at(AT_FDCWD, template, where)) return real_mkdtemp(template);
    int wrong = point("mkdtemp", where);
    if (wrong) {
        errno = wrong;
        return NULL;
    }
    enter();
    char *made = real_mkdtemp(template);
    if (made != NULL && absolute(AT_FDCWD, made, where)) say("mkdir", where, NULL);
    leave();
    return made;
}

#define TWO_NAMES(name, from_dir, from, to_dir, to, word, call, ...)                               \
    int name(__VA_ARGS__) {                                                                        \
        REAL(int, name, __VA_ARGS__);                                                              \
        char here[PATH_MAX], there[PATH_MAX];                                                      \
        if (!inside_at(to_dir, to, there)) return real_##name call;                                \
        if (!inside_at(from_dir, from, here)) here[0] = 0;                                         \
        FAILS(#name, there);                                                                       \
        enter();                                                                                   \
        int done = real_##name call;                                                               \
        if (done == 0) say(word, here, there);                                                     \
        leave();                                                                                   \
        return done;                                                                               \
    }
TWO_NAMES(rename, AT_FDCWD, from, AT_FDCWD, to, "rename", (from, to), const char *from,
          const char *to)
TWO_NAMES(renameat, a, from, b, to, "rename", (a, from, b, to), int a, const char *from, int b,
          const char *to)
TWO_NAMES(renameat2, a, from, b, to, "rename", (a, from, b, to, flags), int a, const char *from,
          int b, const char *to, unsigned flags)
TWO_NAMES(link, AT_FDCWD, from, AT_FDCWD, to, "link", (from, to), const char *from, const char *to)
TWO_NAMES(linkat, a, from, b, to, "link", (a, from, b, to, flags), int a, const char *from, int b,
          const char *to, int flags)

/* ---- children ---- */

static int is_attached(const char *path) {
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    return strncmp(name, "git", 3) == 0 || strcmp(name, "cp") == 0 || strcmp(name, "rm") == 0;
}

/* Windlass hides its environment from its children; those that write for it get these variables. */
int execve(const char *path, char *const argv[], char *const envp[]) {
    REAL(int, execve, const char *, char *const[], char *const[]);
    if (control == NULL || envp == NULL) return real_execve(path, argv, envp);
    size_t count = 0;
    while (envp[count] != NULL) count++;
    char **changed = __builtin_alloca((count + 3) * sizeof(char *));
    char preload[PATH_MAX + 16], shim[PATH_MAX + 16];
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        if (strncmp(envp[i], "LD_PRELOAD=", 11) != 0 && strncmp(envp[i], "WINDLASS_SHIM=", 14) != 0)
            changed[used++] = envp[i];
    if (is_attached(path)) {
        snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library_path);
        snprintf(shim, sizeof shim, "WINDLASS_SHIM=%s", control_path);
        changed[used++] = preload;
        changed[used++] = shim;
    }
    changed[used] = NULL;
    return real_execve(path, argv, changed);
}

int execv(const char *path, char *const argv[]) { return execve(path, argv, environ); }
