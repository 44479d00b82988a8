#include "redact.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "facts/read.h"

enum { TEXT_MOST = 8192, ADDRESSES_MOST = 256 };

/* The keys that are left out besides the keys of facts that are the program's own (facts_is_own). */
static const char *const left_out[] = {"guid", "rkey", "lkey"};

/* -- names: the home directory is first, since it has the user's name in it, and the whole name of the host */

struct name {
    char text[256];
    const char *instead;
};

static struct name names[8];
static unsigned name_count;

static void add_name(const char *text, const char *instead)
{
    bool common = !text || strlen(text) < 3 || !strcmp(text, "root") || !strcmp(text, "localhost");
    if (common || strlen(text) >= sizeof names->text || name_count == sizeof names / sizeof *names)
        return;
    snprintf(names[name_count].text, sizeof names->text, "%s", text);
    names[name_count++].instead = instead;
}

static void find_names(void)
{
    char host[256] = "";
    const struct passwd *user = getpwuid(geteuid());
    if (name_count)
        return;
    gethostname(host, sizeof host - 1);
    add_name(getenv("HOME"), "~");
    add_name(user ? user->pw_dir : NULL, "~");
    add_name(getenv("USER"), "USER");
    add_name(getenv("LOGNAME"), "USER");
    add_name(user ? user->pw_name : NULL, "USER");
    add_name(host, "HOST");
    host[strcspn(host, ".")] = 0;
    add_name(host, "HOST");
}

static void replace_names(const char *text, char *to, size_t size)
{
    size_t length = 0;
    while (*text && length + 8 < size) {
        const struct name *found = NULL;
        for (unsigned i = 0; i < name_count && !found; i++)
            if (!strncmp(text, names[i].text, strlen(names[i].text)))
                found = &names[i];
        if (found)
            length += (size_t)snprintf(to + length, size - length, "%s", found->instead);
        else
            to[length++] = *text;
        text += found ? strlen(found->text) : 1;
    }
    to[length] = 0;
}

/* -- addresses */

static char addresses[ADDRESSES_MOST][INET6_ADDRSTRLEN];
static unsigned address_count;

static bool is_loopback(const char *text)
{
    return !strncmp(text, "127.", 4) || !strncmp(text, "::ffff:127.", 11) || !strcmp(text, "::1") ||
           !strcmp(text, "::") || !strcmp(text, "0.0.0.0") || !strcmp(text, "::ffff:0.0.0.0");
}

static bool is_address(const char *text)
{
    unsigned char bytes[16];
    unsigned mac[6];
    int end = 0;
    if (inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1)
        return !is_loopback(text);
    return sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", mac, mac + 1, mac + 2, mac + 3, mac + 4, mac + 5, &end) == 6 &&
           !text[end];
}

static unsigned number_of(const char *address)
{
    for (unsigned i = 0; i < address_count; i++)
        if (!strcmp(addresses[i], address))
            return i + 1;
    if (address_count < ADDRESSES_MOST)
        snprintf(addresses[address_count++], sizeof *addresses, "%s", address);
    return address_count;
}

static void replace_addresses(const char *text, char *to, size_t size)
{
    size_t length = 0;
    while (*text && length + 64 < size) {
        char word[INET6_ADDRSTRLEN];
        size_t span = strspn(text, "0123456789abcdefABCDEF:."), whole = span;
        while (span && strchr(":.", text[span - 1])) /* these end a sentence, or come before a list */
            span--;
        bool fits = span && span < sizeof word;
        snprintf(word, sizeof word, "%.*s", fits ? (int)span : 0, text);
        if (fits && is_address(word)) {
            length += (size_t)snprintf(to + length, size - length, "address-%u", number_of(word));
        } else {
            span = whole ? whole : 1;
            size_t kept = span < size - length - 1 ? span : size - length - 1;
            memcpy(to + length, text, kept);
            length += kept;
        }
        text += span;
    }
    to[length] = 0;
}

static void redact_text(const char *text, char to[TEXT_MOST])
{
    char middle[TEXT_MOST];
    replace_names(text, middle, sizeof middle);
    replace_addresses(middle, to, TEXT_MOST);
}

/* -- values */

static bool is_left_out(const char *key)
{
    bool found = facts_is_own(key);
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out && !found; i++)
        found = !strcmp(key, left_out[i]);
    return found;
}

/* A value of the same type, so that the form stays. */
static json_t *left_out_value(json_t *value)
{
    if (json_is_integer(value))
        return json_integer(0);
    return json_is_string(value) ? json_string("(left out)") : json_incref(value);
}

/* Fills the object anew, as keys may change: keys of `devices` and `reasons` are names. */
static void redact_object(json_t *object)
{
    char name[TEXT_MOST];
    const char *key;
    json_t *value, *result = json_object();
    json_object_foreach (object, key, value) {
        redact(value);
        redact_text(key, name);
        json_object_set_new(result, name, is_left_out(key) ? left_out_value(value) : json_incref(value));
    }
    json_object_clear(object);
    json_object_update(object, result);
    json_decref(result);
}

void redact(json_t *value)
{
    char text[TEXT_MOST];
    size_t i;
    json_t *each;
    find_names();
    if (json_is_string(value)) {
        redact_text(json_string_value(value), text);
        json_string_set(value, text);
    } else if (json_is_array(value)) {
        json_array_foreach (value, i, each)
            redact(each);
    } else if (json_is_object(value)) {
        redact_object(value);
    }
}
