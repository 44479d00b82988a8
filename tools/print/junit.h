/* A report as JUnit XML, which CI systems show beside the tests of a project. Text may be anything; what is no UTF-8
 * becomes '?'. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* Writes the head of the only suite, with its numbers of cases and of failures. */
void junit_begin(FILE *, const char *suite, size_t cases, size_t failures);

/* Writes a case of this class and name. `text` NULL: it has passed; otherwise the text says why it failed or, if it
 * `passes`, is its output. The first line of a failure's text is its short form. */
void junit_case(FILE *, const char *class, const char *name, bool passes, const char *text);

void junit_end(FILE *);
