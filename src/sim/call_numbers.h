/* Numbers of system calls that are newer than the headers of some systems on which softverbs is built. */
#pragma once

#include <sys/syscall.h>

#ifdef __x86_64__
#ifndef SYS_statx
#define SYS_statx 332
#endif
#ifndef SYS_io_pgetevents
#define SYS_io_pgetevents 333
#endif
#ifndef SYS_rseq
#define SYS_rseq 334
#endif
#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#define SYS_io_uring_enter 426
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#endif
