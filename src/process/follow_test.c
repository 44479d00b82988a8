/* Questions to the kernel that fail for want of a descriptor are put again, by a timer. This file answers in place of
 * the kernel. */
#include "process/follow.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "config/config.h"
#include "config/config_net.h"
#include "config/interface_news.h"
#include "process/port.h"
#include "runtime/clock.h"

static struct device device = {.interface = "eth0", .start = {.up = true, .mtu = 1024}};
static bool has_descriptors, is_up;
static unsigned asked, published, followed, woken;
static bool now_up;

const struct device *config_device(unsigned index)
{
    return index ? NULL : &device;
}

bool config_read_interface(struct interface *interface, const char *name)
{
    asked++;
    interface->found = true;
    interface->up = is_up;
    return has_descriptors;
}

struct device_state device_state_follow(const struct device_state *before, const struct interface *interface)
{
    struct device_state next = *before;
    next.up = interface->up;
    return next;
}

bool device_state_equals(const struct device_state *one, const struct device_state *other)
{
    return one->up == other->up;
}

bool config_publish(unsigned index, const struct device_state *next)
{
    published++;
    now_up = next->up;
    return true;
}

int interface_news_open(void)
{
    errno = EMFILE;
    return has_descriptors ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1;
}

bool interface_news_concern(const void *messages, size_t length, const char *name, unsigned index)
{
    return true;
}

bool port_is_stranded(const struct process *process, const struct device *which, unsigned interface)
{
    return false;
}

void node_wake(struct node *node)
{
    woken++;
}

static bool take(struct process *process, const struct device *which, const struct device_state *next)
{
    followed++;
    now_up = next->up;
    return true;
}

static const struct process_parts parts = {.follow = take};

static void wake(struct schedule *schedule)
{
}

static struct process process;

static void begin(bool descriptors)
{
    memset(&process, 0, sizeof process);
    process.parts = &parts;
    schedule_initialize(&process.schedule, wake);
    follow_initialize(&process);
    has_descriptors = descriptors;
    is_up = now_up = true;
    asked = published = followed = woken = 0;
    follow_begin(&process);
}

static void pass(nanos time)
{
    schedule_expire(&process.schedule, clock_now() + time);
}

static void what_is_known_is_not_asked_again(void **state)
{
    begin(true);
    assert_int_equal(asked, 1);
    pass(NANOS_SECOND);
    assert_true(follow_changes(&process, clock_now()));
    assert_int_equal(asked, 1);
    assert_int_equal(woken, 0);
    follow_end(&process);
}

static void what_could_not_be_asked_at_the_opening_is_asked_again(void **state)
{
    begin(false);
    struct pollfd fd;
    assert_int_equal(follow_poll(&process, &fd), 0);
    is_up = false;
    for (unsigned i = 1; i <= 3; i++) {
        assert_true(follow_changes(&process, clock_now())); /* no busy loop */
        assert_int_equal(asked, i);
        pass(NANOS_SECOND);
        assert_int_equal(woken, i);
        assert_true(follow_changes(&process, clock_now()));
    }
    has_descriptors = true;
    pass(NANOS_SECOND);
    assert_true(follow_changes(&process, clock_now()));
    assert_int_equal(followed, 1);
    assert_false(now_up);
    assert_int_equal(follow_poll(&process, &fd), 1); /* and it hears of later changes */
    follow_end(&process);
}

static void what_could_not_be_asked_later_is_asked_again(void **state)
{
    begin(true);
    has_descriptors = is_up = false;
    process.helper.follow.pending = 1; /* as after a message */
    assert_true(follow_changes(&process, clock_now()));
    assert_int_equal(followed, 0);
    pass(NANOS_MILLISECOND);
    assert_int_equal(woken, 0);
    has_descriptors = true;
    pass(NANOS_SECOND);
    assert_int_equal(woken, 1);
    assert_true(follow_changes(&process, clock_now()));
    assert_int_equal(followed, 1);
    assert_false(now_up);
    follow_end(&process);
}

TESTS(what_is_known_is_not_asked_again,
      what_could_not_be_asked_at_the_opening_is_asked_again,
      what_could_not_be_asked_later_is_asked_again)
