/* Which functions of <infiniband/verbs.h> the cases of a program call, for docs/conformance.md. Every file here is
 * compiled with names of those functions that call `record` first (declared.py makes them). */
#ifndef API_RECORD_H
#define API_RECORD_H

/* Called with a string that lives on; does nothing unless $SOFTVERBS_TEST_RECORD names a file. */
void record(const char *name);

/* A case begins: what was called before is forgotten. */
void record_begin(void);
/* It went well: its line is added to the file, the name of the case and then those of the functions, between tabs. */
void record_end(const char *name_of_case);

#endif
