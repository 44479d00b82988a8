#include "facts/facts.h"

#include "diag/clean.h"

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
