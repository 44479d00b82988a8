/* The part of an executable file that says how it is to be started: ELF of this machine's own word size. */
#pragma once

#include <limits.h>
#include <stdbool.h>

enum { PROGRAM_TEXT = 512 };

struct program {
    char script[PROGRAM_TEXT];      /* a script's interpreter; "": no script */
    bool shell;                     /* a script without an interpreter, for the shell that execvp(3) starts */
    char interpreter[PROGRAM_TEXT]; /* the dynamic linker; "": static */
    char rpath[PROGRAM_TEXT];       /* DT_RPATH, which precedes LD_LIBRARY_PATH; "": no DT_RPATH, or DT_RUNPATH too */
    bool go;                        /* written in Go, which makes its system calls without libc */
    bool foreign;                   /* of another architecture than this command's */
};

/* 0, or errno; ENOEXEC: neither a script nor such a file, or a damaged one. Nothing in the file is trusted. */
int program_read(const char *path, struct program *);

/* The right by which the program gets more than the user that starts it has, so that the dynamic linker ignores
 * LD_LIBRARY_PATH and LD_PRELOAD, as words after "is". NULL: no such right. */
const char *program_rights(const char *path);

/* Writes the path where execvp(3) finds the program. False: no such file can be executed. */
bool program_find(const char *name, char path[PATH_MAX]);
