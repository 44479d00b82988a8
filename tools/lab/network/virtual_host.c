#include "lab/network/virtual_host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "lab/network/rtnetlink.h"
#include "lab/own_root.h"
#include "place.h"

static bool fail(const char *what)
{
    return complain_and(false, "lab: %s: %s.", what, strerror(errno));
}

/* --- files */

__attribute__((format(printf, 3, 4))) static bool write_file(const char *path, mode_t mode, const char *format, ...)
{
    va_list rest;
    FILE *file = fopen(path, "we");
    if (!file)
        return fail(path);
    va_start(rest, format);
    vfprintf(file, format, rest);
    va_end(rest);
    bool written = !fclose(file) && !chmod(path, mode);
    return written ? true : fail(path);
}

static bool write_names(const struct lab_plan *plan)
{
    static char text[LAB_HOSTS_MOST * 128];
    size_t used = (size_t)snprintf(text, sizeof text, "127.0.0.1 localhost\n::1 localhost ip6-localhost\n");
    for (unsigned i = 0; i < plan->count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "10.77.0.%u %s\nfd77::%x %s\n", i + 1, plan->hosts[i],
                                 i + 1, plan->hosts[i]);
    if (!write_file(LAB_STATE "/hosts", 0644, "%s", text))
        return false;
    return !mount(LAB_STATE "/hosts", "/etc/hosts", NULL, MS_BIND, NULL) ? true : fail("/etc/hosts can't be replaced");
}

/* Writes the directory at the front of $PATH: commands that start programs on other hosts, and this command. */
static bool write_launchers(void)
{
    static const struct {
        const char *name, *arguments;
    } launchers[] = {{"ssh", " on --as-ssh"}, {"rsh", " on --as-ssh"}, {"softverbs", ""}};
    char self[PLACE_PATH_MAX], path[64];
    if (place_self(self))
        return fail("/proc/self/exe");
    if (mkdir(LAB_STATE "/bin", 0755))
        return fail(LAB_STATE "/bin");
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        snprintf(path, sizeof path, LAB_STATE "/bin/%s", launchers[i].name);
        if (!write_file(path, 0755, "#!/bin/sh\nexec '%s'%s \"$@\"\n", self, launchers[i].arguments))
            return false;
    }
    return true;
}

bool virtual_host_prepare(const struct lab_plan *plan)
{
    if (!own_root_make())
        return false;
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
        return fail("A /proc for the lab's processes can't be mounted");
    if (mount("softverbs-lab", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777"))
        return fail("A /dev/shm for the lab can't be mounted");
    if (mkdir(LAB_STATE, 0755))
        return fail(LAB_STATE);
    return write_names(plan) && write_launchers();
}

/* --- in the host's own process */

/* Mounts a /sys with the host's own interfaces and the machine's control groups. If it can't be mounted, /sys shows the
 * interfaces of the system outside, and nothing else is amiss. */
static void mount_sys(void)
{
    static const char groups_path[] = "/sys/fs/cgroup";
    char path[64];
    int groups = open(groups_path, O_PATH | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", groups);
    if (!mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) && groups >= 0)
        (void)!mount(path, groups_path, NULL, MS_BIND | MS_REC, NULL);
    if (groups >= 0)
        close(groups);
}

/* Mounts the host's private /dev/shm, with the lab's files in it, and its /sys. */
static bool mount_own(const char *name)
{
    char path[64];
    int state = open(LAB_STATE, O_PATH | O_CLOEXEC);
    if (state < 0 || mount("softverbs-lab", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") ||
        mkdir(LAB_STATE, 0755))
        return fail(name);
    snprintf(path, sizeof path, "/proc/self/fd/%d", state);
    if (mount(path, LAB_STATE, NULL, MS_BIND, NULL))
        return fail(LAB_STATE);
    close(state);
    mount_sys();
    return true;
}

static int add_addresses(int netlink, unsigned which)
{
    uint8_t local[16] = {0xfe, 0x80, [8] = 0, 0x73, 0x76, 0xff, 0xfe, 0, 0, (uint8_t)(which + 1)};
    uint8_t global[16], four[4];
    lab_plan_addresses(which, four, global);
    int error = rtnetlink_add_address(netlink, LAB_INTERFACE, AF_INET6, local, 64);
    if (!error)
        error = rtnetlink_add_address(netlink, LAB_INTERFACE, AF_INET, four, 24);
    if (!error)
        error = rtnetlink_add_address(netlink, LAB_INTERFACE, AF_INET6, global, 64);
    return error;
}

static bool set_up_network(const char *name, unsigned which)
{
    int netlink = rtnetlink_open();
    int error = netlink < 0 ? errno : rtnetlink_set_up(netlink, "lo", true);
    if (!error)
        error = rtnetlink_no_own_address(netlink, LAB_INTERFACE);
    if (!error)
        error = rtnetlink_set_up(netlink, LAB_INTERFACE, true);
    if (!error)
        error = add_addresses(netlink, which);
    close(netlink);
    errno = error;
    return error ? fail(name) : true;
}

/* Reports when the namespaces are there, waits for the interface, reports when the host is ready, and stays. */
static void hold(const struct lab_plan *plan, unsigned which, int said, int heard)
{
    const char *name = plan->hosts[which];
    char byte = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, name);
    if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET) || sethostname(name, strlen(name))) {
        fail(name);
        _exit(EXIT_SELF);
    }
    if (!mount_own(name) || write(said, &byte, 1) != 1 || read(heard, &byte, 1) != 1 || !set_up_network(name, which) ||
        write(said, &byte, 1) != 1)
        _exit(EXIT_SELF);
    close(said);
    close(heard);
    for (;;)
        pause();
}

/* --- in process 1 */

static bool join(const struct lab_plan *plan, unsigned which, pid_t holder, int netlink)
{
    uint8_t mac[RTNETLINK_MAC];
    const char *name = plan->hosts[which];
    lab_plan_mac(which, mac);
    int error = rtnetlink_add_veth(netlink, name, LAB_INTERFACE, holder, mac);
    if (error == EOPNOTSUPP)
        return complain_and(
            false, "lab: The kernel has no pairs of interfaces (veth): \"modprobe veth\" as root may load them.");
    if (!error)
        error = rtnetlink_no_own_address(netlink, name);
    if (!error)
        error = rtnetlink_set_up(netlink, name, true);
    errno = error;
    return error ? fail(name) : true;
}

static bool record(const char *name, pid_t holder)
{
    FILE *file = fopen(LAB_STATE "/processes", "ae");
    if (!file)
        return fail(LAB_STATE);
    fprintf(file, "%s %d\n", name, (int)holder);
    return !fclose(file) ? true : fail(LAB_STATE);
}

pid_t virtual_host_start(const struct lab_plan *plan, unsigned which, int netlink)
{
    int said[2], heard[2];
    char byte = 0;
    if (pipe2(said, O_CLOEXEC) || pipe2(heard, O_CLOEXEC)) {
        fail(plan->hosts[which]);
        return -1;
    }
    pid_t holder = fork();
    if (!holder) {
        close(said[0]);
        close(heard[1]);
        hold(plan, which, said[1], heard[0]);
    }
    close(said[1]);
    close(heard[0]);
    bool made = holder > 0 && read(said[0], &byte, 1) == 1 && join(plan, which, holder, netlink) &&
                write(heard[1], &byte, 1) == 1 && read(said[0], &byte, 1) == 1 && record(plan->hosts[which], holder);
    close(said[0]);
    close(heard[1]);
    return made ? holder : -1;
}

/* --- in other processes */

bool virtual_host_enter(pid_t holder)
{
    static const char *const spaces[] = {"ipc", "uts", "net", "mnt"};
    int files[sizeof spaces / sizeof *spaces];
    char path[64], self[PLACE_PATH_MAX];
    int root = own_root_of(holder);
    if (root < 0 || place_self(self))
        return false;
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)holder, spaces[i]);
        files[i] = open(path, O_RDONLY | O_CLOEXEC);
        if (files[i] < 0)
            return false;
    }
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (setns(files[i], 0) || close(files[i]))
            return false;
    return own_root_enter(root) && !close(root);
}

pid_t virtual_host_find(const char *name)
{
    char host[LAB_NAME_SIZE];
    int found = 0, process;
    FILE *file = fopen(LAB_STATE "/processes", "re");
    while (file && !found && fscanf(file, "%15s %d", host, &process) == 2)
        found = strcmp(host, name) ? 0 : process;
    if (file)
        fclose(file);
    return found;
}
