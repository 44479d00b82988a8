#include "abi/testing/notes.h"

#include <stdio.h>

#include "base/lock.h"

struct note notes[NOTES_MOST];
static struct lock lock; /* all here */
static atomic_uint count;

unsigned notes_count(void)
{
    return atomic_load(&count);
}

void notes_clear(void)
{
    lock_take(&lock);
    atomic_store(&count, 0);
    lock_release(&lock);
}

static bool repeats(const struct note *note, const struct calls_layer *layer, const char *title,
                    struct calls_subject subject)
{
    return note->layer == layer->name && note->title == title && note->subject.kind == subject.kind &&
           note->subject.number == subject.number;
}

void notes_add(const struct calls_layer *layer, const char *title, struct calls_subject subject)
{
    lock_take(&lock);
    unsigned at = notes_count();
    if (at && at <= NOTES_MOST && repeats(&notes[at - 1], layer, title, subject))
        notes[at - 1].times++;
    else if (at < NOTES_MOST)
        notes[at] = (struct note){layer->name, title, subject, 1}, atomic_store(&count, at + 1);
    else
        atomic_store(&count, NOTES_MOST + 1);
    lock_release(&lock);
}

bool notes_write(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    for (unsigned at = 0; at < notes_count() && at < NOTES_MOST; at++)
        fprintf(file, "%s %s %s %u %u\n", notes[at].layer, notes[at].title,
                notes[at].subject.kind ? notes[at].subject.kind : "-", notes[at].subject.number, notes[at].times);
    return fclose(file) == 0 && notes_count() <= NOTES_MOST;
}
