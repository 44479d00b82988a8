#include "facts/facts.h"

#define ROW(kind, key, form, source, when, meaning) {#key, FACT_##form, offsetof(struct facts_##kind, key)},
#define KIND(kind, chapter, of)                                                                                        \
    static const struct fact rows_of_##kind[] = {FACTS_##kind(ROW)};                                                   \
    const struct facts_kind facts_of_##kind = {#kind, rows_of_##kind, sizeof rows_of_##kind / sizeof(struct fact),     \
                                               sizeof(struct facts_##kind)};
FACTS_KINDS(KIND)

const struct facts_kind *facts_kind(size_t i)
{
#define KIND_OF(kind, chapter, of) &facts_of_##kind,
    static const struct facts_kind *const kinds[] = {FACTS_KINDS(KIND_OF)};
    return i < sizeof kinds / sizeof *kinds ? kinds[i] : NULL;
}
