#include "imitate/imitate.h"

#include "config/settings.h"
#include "imitate/layer.h"

void imitate_begin(void)
{
    const char *path = setting_environment(SETTING_PROFILE);
    if (path && *path)
        imitated = setting_profile();
    if (!imitated)
        return;
    imitate_add_queries(&imitate_layer.calls);
    imitate_add_queues(&imitate_layer.calls);
    imitate_add_memory(&imitate_layer.calls);
    imitate_add_work(&imitate_layer.calls);
    imitate_take_away(&imitate_layer.calls);
    calls_put_around(&imitate_layer);
}
