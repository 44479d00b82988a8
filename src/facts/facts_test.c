/* Facts as JSON: what is known is written in its form, and what is not is left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "facts/fill.h"

static char written[1024];

static const char *write_of(const struct facts_kind *kind, const void *facts)
{
    memset(written, 0, sizeof written);
    FILE *out = fmemopen(written, sizeof written, "w");
    assert_non_null(out);
    facts_write(out, kind, facts);
    fclose(out);
    return written;
}

static void write_list(FILE *out, const void *of)
{
    fputs(of, out);
}

static void what_is_not_known_is_not_written(void **state)
{
    for (size_t i = 0; facts_kind(i); i++) {
        void *nothing = calloc(1, facts_kind(i)->size);
        assert_non_null(nothing);
        assert_string_equal(write_of(facts_kind(i), nothing), "{}");
        free(nothing);
    }
}

static void what_is_0_is_known(void **state)
{
    struct facts_srq facts = {.handle = {0, true}, .limit = {0, true}};
    assert_string_equal(write_of(&facts_of_srq, &facts), "{\"handle\":0,\"limit\":0}");
}

static void numbers_keep_all_bits_and_their_sign(void **state)
{
    struct facts_tag tag = {.wr_id = {UINT64_MAX, true}, .tag = {UINT64_MAX, true}, .enabled = {false, true}};
    assert_string_equal(write_of(&facts_of_tag, &tag),
                        "{\"tag\":\"0xffffffffffffffff\",\"wr_id\":18446744073709551615,\"enabled\":false}");
    struct facts_missing missing = {0};
    FACT_PUT(&missing.events, true, -2);
    assert_string_equal(write_of(&facts_of_missing, &missing), "{\"events\":-2}");
}

static void texts_of_others_stay_one_string(void **state)
{
    struct facts_qp facts = {.device = "a\"b\nc", .type = "RC"};
    assert_string_equal(write_of(&facts_of_qp, &facts), "{\"device\":\"a\\u0022b\\u000ac\",\"type\":\"RC\"}");
}

static void lists_and_members_are_written_by_who_has_them(void **state)
{
    struct facts_story facts = {.qp = {7, true}};
    fact_put_inner(&facts.cqs, write_list, "[]");
    fact_put_inner(&facts.counts, write_list, "\"timeouts\":3,\"faults\":0");
    assert_string_equal(write_of(&facts_of_story, &facts), "{\"qp\":7,\"timeouts\":3,\"faults\":0,\"cqs\":[]}");
}

static void what_is_filled_in_before_stays(void **state)
{
    const struct {
        struct {
            uint32_t handle, uses;
        } object;
    } object = {{3, 4}}, *from = &object;
    struct facts_pd these = {.device = "soft0"}, *facts = &these;
    FACTS_pd(FACT_FILL)
    assert_string_equal(write_of(&facts_of_pd, facts), "{\"device\":\"soft0\",\"handle\":3,\"users\":4}");
}

TESTS(what_is_not_known_is_not_written,
      what_is_0_is_known,
      numbers_keep_all_bits_and_their_sign,
      texts_of_others_stay_one_string,
      lists_and_members_are_written_by_who_has_them,
      what_is_filled_in_before_stays)
