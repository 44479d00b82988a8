/* Words that sentences of all layers have in common.
 *
 * OBJECT_NAMED: the words for an object: its kind, and its handle as the program has it in the struct, decimal as in
 * the columns of `softverbs show`. A queue pair has its number instead, 0x and hexadecimal, and a work queue, too. A
 * list of diagnoses (diagnose/diagnose.def) has the same words, and tools/build/objects.py holds all sentences to them.
 */
#pragma once

#define OBJECT_NAMED "%s with handle %u"

/* The end of a noun after its number. */
static inline const char *plural(unsigned long long count)
{
    return count == 1 ? "" : "s";
}
