/* Stubs of functions that are not built. Each knows its name, and fails in the way that its callers expect.
 *
 * A stub is defined without parameters and called with some. The ABIs of Linux let the caller clean up, so nothing is
 * lost, and the 170 prototypes need not be repeated (many are of private types that no public header declares). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/export.h"
#include "abi/unsupported.h"
#include "base/result.h"

typedef void stub_function(void);

#define STUB_TYPE_code int
#define STUB_TYPE_minus int
#define STUB_TYPE_negative long
#define STUB_TYPE_number uint64_t
#define STUB_TYPE_pointer void *
#define STUB_TYPE_nothing void

#define RESULT_REFUSE_number(error) return errno = (error), 0

/* Defines stub_ID, which refuses in the name of `what`. */
#define STUB(outcome, id, what)                                                                                        \
    __attribute__((unused)) static STUB_TYPE_##outcome stub_##id(void)                                                 \
    {                                                                                                                  \
        RESULT_REFUSE_##outcome(unsupported(what));                                                                    \
    }

/* Exports a stub under its name, unless another file of the library defines that function. */
#define STUB_EXPORTED(outcome, name)                                                                                   \
    STUB(outcome, name, #name)                                                                                         \
    EXPORT STUB_TYPE_##outcome name(void) __attribute__((weak, alias("stub_" #name)));

/* An exported function and its stub; the two are equal when the function is not built. */
struct stub_entry {
    const char *name;
    stub_function *exported, *stub;
    bool private;
};

#define STUB_ENTRY(name, private)                                                                                      \
    {                                                                                                                  \
#name, (stub_function *)name, (stub_function *)stub_##name, private                                            \
    }

extern const struct stub_entry stub_entries[]; /* generated; the last has no name */
