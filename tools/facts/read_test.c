/* The reader of processes' facts trusts nothing, and a fact that is not known is never 0. */
#include "facts/read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"

static json_t *parse(const char *text)
{
    return facts_parse(text, strlen(text));
}

/* Whether the text is taken as a tag, a queue pair and so on. */
static bool takes(const struct facts_kind *kind, const char *text, void *facts)
{
    json_t *json = parse(text);
    bool taken = facts_read(kind, json, facts);
    json_decref(json);
    return taken;
}

static void keys_that_are_not_known_are_left(void **state)
{
    struct facts_cq cq;
    assert_true(takes(&facts_of_cq, "{\"handle\":7,\"colour\":{\"of\":[1,\"red\"]},\"armed\":false}", &cq));
    assert_true(cq.handle.known && cq.handle.value == 7 && cq.armed.known && !cq.armed.value);
}

static void what_is_missing_is_not_0(void **state)
{
    struct facts_cq cq;
    assert_true(takes(&facts_of_cq, "{\"waiting\":0,\"lost\":null}", &cq));
    assert_true(facts_is_zero(&cq.waiting) && !facts_is_zero(&cq.size) && !facts_is_some(&cq.size));
    assert_false(cq.lost.known || cq.armed.known || cq.events.of);
}

static void numbers_of_64_bits_arrive_whole(void **state)
{
    struct facts_tag tag;
    assert_true(takes(&facts_of_tag, "{\"wr_id\":18446744073709551615,\"tag\":\"0xffffffffffffffff\"}", &tag));
    assert_true(tag.wr_id.value == UINT64_MAX && tag.tag.value == UINT64_MAX);
    assert_true(takes(&facts_of_tag, "{\"wr_id\":9223372036854775808}", &tag));
    assert_true(tag.wr_id.value == 1ull << 63);
    struct facts_qp qp; /* a number in a text remains text */
    json_t *json = parse("{\"device\":\"18446744073709551615 \\\" 9223372036854775808\"}");
    assert_true(facts_read(&facts_of_qp, json, &qp));
    assert_string_equal(qp.device, "18446744073709551615 \" 9223372036854775808");
    json_decref(json);
}

static void values_of_another_type_are_refused(void **state)
{
    static const char *const texts[] = {"7",
                                        "[]",
                                        "{\"number\":\"7\"}",
                                        "{\"number\":7.5}",
                                        "{\"state\":3}",
                                        "{\"busy\":1}",
                                        "{\"traffic\":3}",
                                        "{\"number\":7,\"state\":[\"RTS\"]}",
                                        "{\"device\":true}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct facts_qp qp;
        assert_false(takes(&facts_of_qp, texts[i], &qp));
        assert_false(qp.number.known || qp.state);
    }
}

static void numbers_that_cannot_be_are_refused(void **state)
{
    struct facts_qp qp;
    struct facts_tag tag;
    assert_false(takes(&facts_of_qp, "{\"number\":-1}", &qp));
    assert_false(takes(&facts_of_qp, "{\"number\":4294967296}", &qp));
    assert_false(takes(&facts_of_qp, "{\"peer_pid\":2147483648}", &qp));
    assert_false(takes(&facts_of_qp, "{\"number\":18446744073709551615}", &qp));
    assert_false(takes(&facts_of_tag, "{\"wr_id\":18446744073709551616}", &tag)); /* no JSON of jansson's */
    assert_false(takes(&facts_of_tag, "{\"tag\":\"17\"}", &tag));
    assert_false(takes(&facts_of_tag, "{\"tag\":\"0x1ffffffffffffffff\"}", &tag));
    assert_true(takes(&facts_of_qp, "{\"number\":4294967295}", &qp));
}

static void words_are_ours(void **state)
{
    struct facts_qp qp;
    assert_false(takes(&facts_of_qp, "{\"state\":\"RTS\\u001b[2J\"}", &qp));
    assert_false(takes(&facts_of_qp, "{\"state\":\"a\\\"b\"}", &qp));
    assert_true(takes(&facts_of_qp, "{\"device\":\"a\\\"b\"}", &qp));
}

static void depth_has_an_end(void **state)
{
    enum { DEEPER = FACTS_DEPTH + 1 };
    char text[2 * DEEPER + 1];
    memset(text, '[', DEEPER);
    memset(text + DEEPER, ']', DEEPER);
    assert_null(facts_parse(text, 2 * DEEPER));
    json_t *json = facts_parse(text + 1, 2 * DEEPER - 2);
    assert_non_null(json);
    json_decref(json);
}

static void what_is_cut_is_refused(void **state)
{
    static const char text[] = "{\"wr_id\":18446744073709551615,\"tag\":\"0x1\\\\\"}";
    for (size_t size = 0; size < sizeof text - 1; size++)
        assert_null(facts_parse(text, size));
}

TESTS(keys_that_are_not_known_are_left,
      what_is_missing_is_not_0,
      numbers_of_64_bits_arrive_whole,
      values_of_another_type_are_refused,
      numbers_that_cannot_be_are_refused,
      words_are_ours,
      depth_has_an_end,
      what_is_cut_is_refused)
