#include "trace/call_names.h"

#include <string.h>

/* Returns true if this is the name of the call, with or without its "ibv_" or "rdma_". */
static bool is_named(const char *title, struct text_part name)
{
    return text_part_is(name, title) || text_part_is(name, strchr(title, '_') + 1);
}

bool call_names_list(const char *calls, const char *title)
{
    bool others_are = !*calls || text_excludes(&calls);
    for (struct text_part name; text_next(&calls, ",", &name);)
        if (is_named(title, name))
            return !others_are;
    return others_are;
}

struct text_part call_names_unknown(const char *calls)
{
    static const char *const titles[] = {
#define CALL(answer, type, name, title, ...) title,
#define HELD CALL
#include "calls/each.def"
    };
    text_excludes(&calls);
    for (struct text_part name; text_next(&calls, ",", &name);) {
        size_t i = name.length ? 0 : sizeof titles / sizeof *titles + 1;
        while (i < sizeof titles / sizeof *titles && !is_named(titles[i], name))
            i++;
        if (i == sizeof titles / sizeof *titles)
            return name;
    }
    return (struct text_part){0};
}
