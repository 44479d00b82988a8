/* The macros of tests/api/harness for a program that is no test: whatever fails ends it. */
#pragma once

#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPECT_TRUE(condition)                                                                                         \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define EXPECT(left, comparison, right) EXPECT_TRUE((left)comparison(right))
