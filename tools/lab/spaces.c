#include "lab/spaces.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "lab/own_root.h"
#include "lab/rights.h"

enum { SPACES = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS };

bool spaces_enter(const char *command, bool keeps_rights)
{
    if (!unshare(SPACES))
        return true;
    int error = errno;
    if (error == EPERM && rights_take() && !unshare(SPACES) && (!keeps_rights || rights_keep()))
        return true;
    error = error == EPERM ? errno : error;
    if (error == EPERM && geteuid() && own_root_is_chroot())
        complain(
            "%s: This system allows no namespaces of one's own: its root directory is not a mount point (a chroot), "
            "where the kernel refuses user namespaces. Root may have some.",
            command);
    else
        complain(
            "%s: This system allows no namespaces of one's own (%s). \"softverbs doctor\" says what to set; root may "
            "have some in any case.",
            command, strerror(error));
    return false;
}
