#include "transport/testing/simulator/simulator.h"

#include <string.h>

void simulator_run(uint64_t seed, FILE *log, struct simulator_report *report)
{
    struct world world;
    world_make(&world, seed, NULL);
    world.log = log;
    world_run(&world);
    report->trace = world.trace;
    report->statistics = world.statistics;
    memcpy(report->complaint, world.complaint, sizeof(report->complaint));
    world_free(&world);
}

void watcher_run(struct watcher *watcher, uint64_t seed, char complaint[256])
{
    struct world world;
    world_make(&world, seed, watcher);
    watcher->world = &world;
    world_run(&world);
    memcpy(complaint, world.complaint, sizeof(world.complaint));
    world_free(&world);
    watcher->world = NULL;
}
