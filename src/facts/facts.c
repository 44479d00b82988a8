#include "facts/facts.h"

#include "diag/clean.h"

#define ROW(key, form, source, when, meaning) {#key, FACT_##form, offsetof(struct OF, key)},
#define OF facts_process
static const struct fact rows_of_process[] = {
#define PROCESS ROW
#include "facts/facts.def"
};
#undef OF
#define OF facts_missing
static const struct fact rows_of_missing[] = {
#define MISSING ROW
#include "facts/facts.def"
};
#undef OF
#define OF facts_qp
static const struct fact rows_of_qp[] = {
#define QP ROW
#include "facts/facts.def"
};
#undef OF
#define OF facts_cq
static const struct fact rows_of_cq[] = {
#define CQ ROW
#include "facts/facts.def"
};
#undef OF
#define OF facts_srq
static const struct fact rows_of_srq[] = {
#define SRQ ROW
#include "facts/facts.def"
};
#undef OF
#define OF facts_mask
static const struct fact rows_of_mask[] = {
#define MASK ROW
#include "facts/facts.def"
};
#undef OF
#define OF facts_tag
static const struct fact rows_of_tag[] = {
#define TAG ROW
#include "facts/facts.def"
};
#undef OF
#define OF facts_mr
static const struct fact rows_of_mr[] = {
#define MR ROW
#include "facts/facts.def"
};
#undef OF
#define OF facts_pd
static const struct fact rows_of_pd[] = {
#define PD ROW
#include "facts/facts.def"
};
#undef OF
#define OF facts_identifier
static const struct fact rows_of_identifier[] = {
#define IDENTIFIER ROW
#include "facts/facts.def"
};
#undef OF
#define OF facts_connected
static const struct fact rows_of_connected[] = {
#define CONNECTED ROW
#include "facts/facts.def"
};
#undef OF
#define OF facts_connection
static const struct fact rows_of_connection[] = {
#define CONNECTION ROW
#include "facts/facts.def"
};
#undef OF
#define OF facts_story
static const struct fact rows_of_story[] = {
#define STORY ROW
#include "facts/facts.def"
};
#undef OF
#define OF facts_short
static const struct fact rows_of_short[] = {
#define SHORT ROW
#include "facts/facts.def"
};
#undef OF
#define OF facts_error
static const struct fact rows_of_error[] = {
#define ERROR ROW
#include "facts/facts.def"
};
#undef OF
#define OF facts_receive
static const struct fact rows_of_receive[] = {
#define RECEIVE ROW
#include "facts/facts.def"
};
#undef OF
#define OF facts_refused
static const struct fact rows_of_refused[] = {
#define REFUSED ROW
#include "facts/facts.def"
};
#undef OF

#define KIND(kind)                                                                                                     \
    const struct facts_kind facts_of_##kind = {#kind, rows_of_##kind, sizeof rows_of_##kind / sizeof(struct fact),     \
                                               sizeof(struct facts_##kind)};
KIND(process)
KIND(missing)
KIND(qp)
KIND(cq)
KIND(srq)
KIND(mask)
KIND(tag)
KIND(mr)
KIND(pd)
KIND(identifier)
KIND(connected)
KIND(connection)
KIND(story)
KIND(short)
KIND(error)
KIND(receive)
KIND(refused)

const struct facts_kind *facts_kind(size_t i)
{
    static const struct facts_kind *const kinds[] = {
        &facts_of_process, &facts_of_missing,    &facts_of_qp,         &facts_of_cq,
        &facts_of_srq,     &facts_of_mask,       &facts_of_tag,        &facts_of_mr,
        &facts_of_pd,      &facts_of_identifier, &facts_of_connected, &facts_of_connection, &facts_of_story,
        &facts_of_short,   &facts_of_error,      &facts_of_receive,    &facts_of_refused};
    return i < sizeof kinds / sizeof *kinds ? kinds[i] : NULL;
}

/* --- JSON */

static bool has_fact(enum fact_form form, const void *value)
{
    switch (form) {
    case FACT_FLAG:
        return ((const struct fact_flag *)value)->known;
    case FACT_WORD:
    case FACT_TEXT:
        return *(const char *const *)value;
    case FACT_INNER:
    case FACT_MEMBERS:
        return ((const struct fact_inner *)value)->write;
    default:
        return ((const struct fact_number *)value)->known;
    }
}

static void write_value(FILE *out, enum fact_form form, const void *value)
{
    const struct fact_number *number = value;
    const struct fact_inner *inner = value;
    switch (form) {
    case FACT_FLAG:
        fputs(((const struct fact_flag *)value)->value ? "true" : "false", out);
        break;
    case FACT_WORD:
        fprintf(out, "\"%s\"", *(const char *const *)value);
        break;
    case FACT_TEXT:
        clean_json(out, *(const char *const *)value);
        break;
    case FACT_INNER:
    case FACT_MEMBERS:
        inner->write(out, inner->of);
        break;
    case FACT_HEX:
        fprintf(out, "\"0x%llx\"", (unsigned long long)number->value);
        break;
    case FACT_SIGNED:
        fprintf(out, "%lld", (long long)number->value);
        break;
    default:
        fprintf(out, "%llu", (unsigned long long)number->value);
    }
}

void facts_write(FILE *out, const struct facts_kind *kind, const void *facts)
{
    const char *separator = "{";
    for (const struct fact *fact = kind->facts; fact < kind->facts + kind->count; fact++) {
        const void *value = (const char *)facts + fact->at;
        if (!has_fact(fact->form, value))
            continue;
        fputs(separator, out);
        if (fact->form != FACT_MEMBERS)
            fprintf(out, "\"%s\":", fact->name);
        write_value(out, fact->form, value);
        separator = ",";
    }
    fputs(*separator == '{' ? "{}" : "}", out);
}
