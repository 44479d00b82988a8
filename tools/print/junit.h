/* A report as JUnit XML, which CI systems show beside the tests of a project. Text may be anything; what is no UTF-8
 * becomes '?'. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* Writes the head of the only suite, with its numbers of cases and of failures. */
void junit_begin(FILE *, const char *suite, size_t cases, size_t failures);

/* A case of "CLASS" and "NAME". `text` NULL: it has passed; else why it failed, or, where `passes`, what it has to say
 * nevertheless. The first line of the text is the short form. */
void junit_case(FILE *, const char *class, const char *name, bool passes, const char *text);

void junit_end(FILE *);
