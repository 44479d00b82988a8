/* Which functions of <infiniband/verbs.h> the cases of a program call, for docs/evidence/conformance.md. Every file
 * here is compiled with names of those functions that call `record` first (declared.py makes them). */
#pragma once

#include <stdint.h>

/* Called with a string that lives on, and notes errno. The name is written nowhere unless $SOFTVERBS_TEST_RECORD names
 * a file. */
void record(const char *name);

/* Called with what the function then answered, which they pass on. errno must agree: set by what failed, as it was
 * before what succeeded. */
int record_code(int error);
int record_poll(int error); /* ENOENT, which says that nothing is there, is not a failure */
int record_minus(int result);
int64_t record_negative(int64_t result);
void *record_pointer(const void *made);

/* The first call of this case whose errno did not agree, as a sentence; NULL: each errno agreed. */
const char *record_disagreement(void);

/* A case begins: what was called before is forgotten. */
void record_begin(void);
/* The case passed: its line is added to the file, the name of the case and then the functions' names, between tabs. */
void record_end(const char *name_of_case);
