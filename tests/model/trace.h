/* The steps of a failing execution, for a reader. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Only while a found execution is done once more. */
extern bool trace_on;

/* A line: the process, and its step; `at` is the address in the code where it happened, or NULL. */
__attribute__((format(printf, 2, 3))) void trace_write(const void *at, const char *format, ...);
#define trace_line(...) (trace_on ? trace_write(__VA_ARGS__) : (void)0)

/* A scenario names a piece of memory: "B's attention", or an array of such pieces. */
void trace_name(const volatile void *address, unsigned size, const char *name);
const char *trace_place(const volatile void *address);
void trace_forget_names(void);

/* Writes the lines to the standard output, as comments of TAP, with the functions and lines of the sources. */
void trace_print(void);
