/* libFuzzer: a file that a user takes for a recording. For any contents, running it ends with a result. */
#include <stdlib.h>
#include <string.h>

#include "record/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static bool hear(void *context, const struct record *record)
{
    uint64_t *records = context;
    if (record->kind >= RECORD_KINDS || record->length > RECORD_LONGEST)
        abort();
    ++*records;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct replay_result result;
    uint64_t records = 0;
    replay_run(bytes, length, hear, &records, &result);
    bool told = *result.words || result.fault != RECORD_FINE;
    if (!told || result.at > length || records != result.records || !memchr(result.words, 0, sizeof result.words))
        abort();
    return 0;
}
