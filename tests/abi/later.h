/* For programs that call functions of releases after the one that is installed: the functions, by name and version
 * node, a device and a protection domain. */
#pragma once

#include <infiniband/verbs.h>

extern struct ibv_context *context;
extern struct ibv_pd *pd;

struct later_function {
    void *place; /* of a pointer to the function */
    const char *name, *node;
};

/* Opens the first device and finds each function up to the one without a name; cmocka's set-up and teardown of a group
 * call these. Fails where the library lacks a function. */
int later_open(const struct later_function *);
int later_close(void **unused);

/* Asserts that a call that makes an object was refused with this errno. */
void refused(const void *answer, int error);
