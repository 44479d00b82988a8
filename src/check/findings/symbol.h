/* Functions, files and lines of addresses in the program. libdw reads them from the program's debugging information, if
 * it is installed (Debian: libdw1); else the module and the offset in it are given, for addr2line(1). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { SYMBOL_SIZE = 352 };

struct symbol {
    bool is_wrapper;    /* a function of <infiniband/verbs.h> or <rdma/rdma_verbs.h> that was not inlined */
    char function[128]; /* "": not known */
    char file[128];     /* without its directories; "": not known */
    char path[512];     /* as the compiler wrote it */
    int line;           /* 0: not known */
    char module[128];   /* the path of the program or library, without its directories */
    size_t offset;      /* the address's in the module */
};

/* Loads libdw, before other threads call verbs. */
void symbol_begin(void);

/* Finds the call before a return address. If functions of the verbs' headers were inlined there, finds the place that
 * called them. Thread-safe. */
void symbol_find(const void *address, struct symbol *);

/* Returns true if this return address is in a function of those headers, so that its caller is the place of interest.
 * The result is cached, so asking again costs a load. Thread-safe. */
bool symbol_is_wrapper(const void *address);

/* Writes "main (FILE:120)", "main (libx.so+0x1234)" or "libx.so+0x1234". */
void symbol_describe(const struct symbol *, char text[SYMBOL_SIZE]);
