/* libFuzzer: bytes as the report of a process. Facts that are read, written and read again are the same. */
#include "facts/read.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* The facts as text: the caller's, by free(3); NULL: they are refused. */
static char *write_again(const struct facts_kind *kind, const json_t *json)
{
    char *text = NULL;
    size_t size = 0;
    void *facts = malloc(kind->size);
    FILE *out = open_memstream(&text, &size);
    require(facts && out);
    bool fine = facts_read(kind, json, facts);
    if (fine)
        facts_write(out, kind, facts);
    fclose(out);
    free(facts);
    if (fine)
        return text;
    free(text);
    return NULL;
}

static void check_kind(const struct facts_kind *kind, const json_t *json)
{
    char *first = write_again(kind, json);
    if (!first)
        return;
    json_t *again = facts_parse(first, strlen(first));
    char *second = write_again(kind, again);
    require(second && !strcmp(first, second));
    free(second);
    free(first);
    json_decref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    json_t *json = facts_parse((const char *)bytes, length);
    for (size_t i = 0; json && facts_kind(i); i++)
        check_kind(facts_kind(i), json);
    json_decref(json);
    return 0;
}
