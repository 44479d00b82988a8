#include "simulate/space/space.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "command.h"
#include "lab/network/rtnetlink.h"
#include "lab/own_root.h"

static const char host[] = "h1";

bool space_open_loopback(void)
{
    int netlink = rtnetlink_open(), error = netlink < 0 ? errno : rtnetlink_set_up(netlink, "lo", true);
    if (netlink >= 0)
        close(netlink);
    errno = error;
    return !error;
}

bool space_furnish(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!own_root_make())
        return false;
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) ||
        mount("softverbs-sim", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") || !space_open_loopback() ||
        sethostname(host, strlen(host))) {
        complain("sim: The namespaces of the run can't be furnished: %s.", strerror(errno));
        return false;
    }
    return true;
}
