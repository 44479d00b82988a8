#include "junit.h"

#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "emit.h"

/* The only control characters of XML are line ends and tabs. */
static void write_letter(FILE *to, unsigned char letter)
{
    static const char *const words[] = {['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;"};
    if (letter < sizeof words / sizeof *words && words[letter])
        fputs(words[letter], to);
    else if (letter >= ' ' && letter != 0x7f)
        putc(letter, to);
    else
        fprintf(to, letter == '\n' || letter == '\t' ? "&#%d;" : "?", letter);
}

static void write_text(FILE *to, const char *text, size_t length)
{
    json_t *clean = emit_text(text);
    const char *byte = json_string_value(clean), *end = byte ? byte + strnlen(byte, length) : NULL;
    for (; byte < end; byte++)
        write_letter(to, (unsigned char)*byte);
    json_decref(clean);
}

void junit_begin(FILE *to, const char *suite, size_t cases, size_t failures)
{
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"", to);
    write_text(to, suite, SIZE_MAX);
    fprintf(to, "\" tests=\"%zu\" failures=\"%zu\">\n", cases, failures);
}

static void write_outcome(FILE *to, bool passes, const char *text)
{
    if (passes) {
        fputs("<system-out>", to);
        write_text(to, text, SIZE_MAX);
        fputs("</system-out>", to);
        return;
    }
    fputs("<failure message=\"", to);
    write_text(to, text, strcspn(text, "\n"));
    fputs("\">", to);
    write_text(to, text, SIZE_MAX);
    fputs("</failure>", to);
}

void junit_case(FILE *to, const char *class, const char *name, bool passes, const char *text)
{
    fputs("  <testcase classname=\"", to);
    write_text(to, class, SIZE_MAX);
    fputs("\" name=\"", to);
    write_text(to, name, SIZE_MAX);
    fputs(text ? "\">" : "\"/>\n", to);
    if (!text)
        return;
    write_outcome(to, passes, text);
    fputs("</testcase>\n", to);
}

void junit_end(FILE *to)
{
    fputs("</testsuite>\n", to);
}
