#include "simulate/turns.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

static const char first_line[] = "softverbs-sim 1\n";

static bool refuse(const char *path, const char *why)
{
    complain("sim: The file \"%s\" can't be replayed: %s.", path, why);
    return false;
}

/* The choices ascend. */
static bool read_turns(FILE *file, struct turns_file *turns)
{
    char line[64], end;
    struct sim_turn turn;
    for (uint64_t next = 0; fgets(line, sizeof line, file); next = (uint64_t)turn.choice + 1) {
        if (sscanf(line, "%" SCNu32 " %" SCNu32 "%c", &turn.choice, &turn.serial, &end) != 3 || end != '\n' ||
            turn.choice < next || turns->count == SIM_TURNS)
            return false;
        turns->turns[turns->count++] = turn;
    }
    return !ferror(file);
}

static bool read_head(FILE *file, struct turns_file *turns)
{
    char line[64], end;
    return fgets(line, sizeof line, file) && !strcmp(line, first_line) && fgets(line, sizeof line, file) &&
           sscanf(line, "seed %" SCNu64 "%c", &turns->seed, &end) == 2 && end == '\n';
}

bool turns_read(const char *path, struct turns_file *turns)
{
    *turns = (struct turns_file){0};
    FILE *file = fopen(path, "re");
    if (!file)
        return refuse(path, strerror(errno));
    turns->turns = malloc(SIM_TURNS * sizeof *turns->turns);
    bool read = turns->turns && read_head(file, turns) && read_turns(file, turns);
    bool lacks_memory = !turns->turns;
    fclose(file);
    if (read)
        return true;
    free(turns->turns);
    return refuse(path, lacks_memory ? strerror(ENOMEM) : "it is no file of turns, or damaged");
}

bool turns_write(const char *path, const struct turns_file *turns)
{
    FILE *file = fopen(path, "we");
    if (file) {
        fprintf(file, "%sseed %" PRIu64 "\n", first_line, turns->seed);
        for (uint32_t i = 0; i < turns->count; i++)
            fprintf(file, "%" PRIu32 " %" PRIu32 "\n", turns->turns[i].choice, turns->turns[i].serial);
    }
    bool failed = file && ferror(file);
    if (file && !fclose(file) && !failed)
        return true;
    complain("sim: The file \"%s\" can't be written: %s.", path, strerror(errno));
    return false;
}
