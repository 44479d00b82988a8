#include "profile/vendors.h"

#include <stddef.h>
#include <string.h>

enum { OBSERVED, DOCUMENTED };

static const struct vendor_error errors[] = {
#define VENDOR(driver, code, status, how, words, source) {driver, code, status, how == DOCUMENTED, words, source},
#include "profile/vendors.def"
};

enum { ERRORS = sizeof errors / sizeof *errors };

const struct vendor_error *vendors_at(unsigned i)
{
    return i < ERRORS ? &errors[i] : NULL;
}

const struct vendor_error *vendors_next(const char *driver, uint32_t code, const struct vendor_error *last)
{
    for (const struct vendor_error *error = last ? last + 1 : errors; error < errors + ERRORS; error++)
        if (error->code == code && !strcmp(error->driver, driver))
            return error;
    return NULL;
}

bool vendors_code(const char *driver, const char *status, uint32_t *code)
{
    for (const struct vendor_error *error = errors; error < errors + ERRORS; error++)
        if (!strcmp(error->driver, driver) && !strcmp(error->status, status)) {
            *code = error->code;
            return true;
        }
    return false;
}
