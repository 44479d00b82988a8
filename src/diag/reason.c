#include "diag/diag.h"

#include <stddef.h>

static const struct {
    unsigned number;
    const char *name, *sentence;
} reasons[] = {
#define REASON(number, name, sentence) {number, #name, sentence},
#include "diag/diag.def"
};

enum { REASONS = sizeof(reasons) / sizeof(*reasons) };

const char *reason_sentence(unsigned number)
{
    for (size_t i = 0; i < REASONS; i++)
        if (reasons[i].number == number)
            return reasons[i].sentence;
    return "unknown reason";
}

const char *reason_name(unsigned number)
{
    for (size_t i = 0; i < REASONS; i++)
        if (reasons[i].number == number)
            return reasons[i].name;
    return NULL;
}

void reason_each(void (*visit)(unsigned, const char *, const char *, void *), void *context)
{
    for (size_t i = 0; i < REASONS; i++)
        visit(reasons[i].number, reasons[i].name, reasons[i].sentence, context);
}
