/* The values of vendor_err of other devices (vendors.def). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct vendor_error {
    const char *driver;
    uint32_t code;
    const char *status; /* without IBV_WC_; "": any, or not known */
    bool documented;    /* by the driver's own source; false: observed by users */
    const char *words, *source;
};

/* The next one of the list that has this driver and code, after `last` or, where that is NULL, from the beginning.
 * NULL: there is no more. Thread-safe. */
const struct vendor_error *vendors_next(const char *driver, uint32_t code, const struct vendor_error *last);

/* Writes the first code of the driver with this status (without IBV_WC_). False: the list has none. */
bool vendors_code(const char *driver, const char *status, uint32_t *code);

/* The i-th of the list; NULL: there is no more. */
const struct vendor_error *vendors_at(unsigned i);
