/* Included before everything else into the code under test: the system calls and the allocator that it meets are the
 * model's. Names that structs have as well are replaced only where they are called. */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* Headers that are included before their names are replaced. */
#include "base/mapping.h"
#include "base/text/text.h"
#include "base/user.h"
#include "wire/guarded.h"
#include "wire/payload.h"

/* Copies that may fault are instructions that the compiler does not show to the model: here they are plain ones. */
bool model_guarded_copy(void *, const void *, size_t);
bool model_guarded_load(const void *, unsigned size, uint64_t *value);
bool model_guarded_store(void *, uint64_t value, unsigned size);
bool model_payload_can_land(const struct iovec *to, uint32_t count);
bool model_payload_copy(const struct payload *, uint32_t offset, const struct iovec *to, uint32_t count);

void *model_memcpy(void *, const void *, size_t);
void *model_memmove(void *, const void *, size_t);
void *model_memset(void *, int, size_t);
void *model_calloc(size_t, size_t);
void model_free(void *);

int model_socket(int, int, int);
int model_bind(int, const struct sockaddr *, socklen_t);
int model_connect(int, const struct sockaddr *, socklen_t);
ssize_t model_sendmsg(int, const struct msghdr *, int);
ssize_t model_recvmsg(int, struct msghdr *, int);
ssize_t model_recv(int, void *, size_t, int);
int model_setsockopt(int, int, int, const void *, socklen_t);
int model_epoll_create1(int);
int model_epoll_ctl(int, int, int, struct epoll_event *);
int model_eventfd(unsigned, int);
int model_eventfd_read(int, eventfd_t *);
int model_eventfd_write(int, eventfd_t);
int model_epoll_wait(int, struct epoll_event *, int, int);
int model_timerfd_create(int, int);
int model_timerfd_settime(int, int, const struct itimerspec *, struct itimerspec *);
int model_poll(struct pollfd *, nfds_t, int);
int model_close(int);
int model_dup(int);

int model_memfd_create(const char *, unsigned);
int model_ftruncate(int, off_t);
void *model_mmap(void *, size_t, int, int, int, off_t);
int model_munmap(void *, size_t);
int model_madvise(void *, size_t, int);
int model_fcntl(int, int, ...);
int model_fstat(int, struct stat *);
int model_fchmod(int, mode_t);
int model_fstatfs(int, struct statfs *);

int model_open(const char *, int, ...);
int model_mkostemp(char *, int);
int model_stat(const char *, struct stat *);
int model_lstat(const char *, struct stat *);
int model_mkdir(const char *, mode_t);
int model_link(const char *, const char *);
int model_rename(const char *, const char *);
int model_unlink(const char *);
int model_posix_fallocate(int, off_t, off_t);
ssize_t model_pread(int, void *, size_t, off_t);
ssize_t model_read(int, void *, size_t);
bool model_text_read_at(int, const char *, char *, size_t);
DIR *model_opendir(const char *);
struct dirent *model_readdir(DIR *);
int model_closedir(DIR *);
int model_dirfd(DIR *);

long model_syscall(long, ...);
int model_nanosleep(const struct timespec *, struct timespec *);
int model_sched_yield(void);
int model_setcancelstate(int, int *);
int model_mutex_lock(pthread_mutex_t *);
int model_mutex_unlock(pthread_mutex_t *);
int model_clock_gettime(clockid_t, struct timespec *);
uid_t model_user(void);
pid_t model_getpid(void);
int model_getrlimit(__rlimit_resource_t, struct rlimit *);
ssize_t model_getrandom(void *, size_t, unsigned);
int model_prctl(int, ...);
char *model_getenv(const char *);
unsigned long model_getauxval(unsigned long);
ssize_t model_process_vm_readv(pid_t, const struct iovec *, unsigned long, const struct iovec *, unsigned long,
                               unsigned long);
ssize_t model_process_vm_writev(pid_t, const struct iovec *, unsigned long, const struct iovec *, unsigned long,
                                unsigned long);

bool model_elsewhere_runs(pid_t, long call);
bool model_user_owns_process(uid_t, pid_t);
bool model_user_has_own_number(uid_t);

#ifdef MODEL_UNDER_TEST
#define guarded_copy model_guarded_copy
#define guarded_load model_guarded_load
#define guarded_store model_guarded_store
#define payload_can_land model_payload_can_land
#define payload_copy model_payload_copy
#define clock_gettime model_clock_gettime
#define getuid model_user
#define geteuid model_user
#define getegid model_user
#define log_reason model_log_reason
#define log_write model_log_write
#define guard_region_add model_guard_region_add
#define guard_region_remove model_guard_region_remove
#define guard_protect_by model_guard_protect_by
#define guard_start model_guard_start
#define memcpy model_memcpy
#define memmove model_memmove
#define memset model_memset
#define calloc model_calloc
#define free(...) model_free(__VA_ARGS__)
#define socket(...) model_socket(__VA_ARGS__)
#define bind model_bind
#define connect(...) model_connect(__VA_ARGS__)
#define sendmsg model_sendmsg
#define recvmsg model_recvmsg
#define recv model_recv
#define setsockopt model_setsockopt
#define epoll_create1 model_epoll_create1
#define epoll_ctl model_epoll_ctl
#define eventfd(...) model_eventfd(__VA_ARGS__)
#define eventfd_read model_eventfd_read
#define eventfd_write model_eventfd_write
#define epoll_wait model_epoll_wait
#define timerfd_create model_timerfd_create
#define timerfd_settime model_timerfd_settime
#define poll(...) model_poll(__VA_ARGS__)
#define close model_close
#define dup model_dup
#define memfd_create model_memfd_create
#define ftruncate model_ftruncate
#define mmap model_mmap
#define munmap model_munmap
#define mapping_make(length, ...) model_mmap(NULL, length, __VA_ARGS__)
#define madvise model_madvise
#define fcntl model_fcntl
#define fstat model_fstat
#define fchmod model_fchmod
#define fstatfs model_fstatfs
#define open model_open
#define mkostemp model_mkostemp
#define stat(...) model_stat(__VA_ARGS__)
#define lstat model_lstat
#define mkdir model_mkdir
#define link(...) model_link(__VA_ARGS__)
#define rename model_rename
#define unlink model_unlink
#define posix_fallocate model_posix_fallocate
#define pread model_pread
#define read model_read
#define text_read_at model_text_read_at
#define opendir model_opendir
#define readdir model_readdir
#define closedir model_closedir
#define dirfd model_dirfd
#define syscall model_syscall
#define nanosleep model_nanosleep
#define sched_yield model_sched_yield
#define pthread_setcancelstate model_setcancelstate
#define pthread_mutex_lock model_mutex_lock
#define pthread_mutex_unlock model_mutex_unlock
#define getpid model_getpid
#define getrlimit model_getrlimit
#define getrandom model_getrandom
#define prctl model_prctl
#define getenv model_getenv
#define secure_getenv model_getenv
#define getauxval model_getauxval
#define peer_threads_runs model_elsewhere_runs
#define user_owns_process model_user_owns_process
#define user_has_own_number model_user_has_own_number
#define process_vm_readv model_process_vm_readv
#define process_vm_writev model_process_vm_writev
#endif
