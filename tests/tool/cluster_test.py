#!/usr/bin/env python3
"""The files of examples/cluster are what a parser takes them for, and their commands do on hosts of a lab what the page says (docs/user/clusters.md)."""
import os
import shlex
import sys

import cases
from cases import Skip, softverbs, told

EXAMPLES = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/cluster"))


def _documents(name):
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise Skip("python3-yaml is not installed") from None
    with open(f"{EXAMPLES}/{name}", encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


def _on_lab(hosts, script):
    done = softverbs("lab", "--hosts", hosts, "--", "sh", "-c", script)
    if b"allows no namespaces" in done.stderr or b"can't be mounted" in done.stderr:
        raise Skip(done.stderr.decode())
    if b"There is no program" in done.stderr or b"not found" in done.stderr:
        raise Skip("perftest is not installed")
    assert done.returncode == 0, told(done)
    return done.stdout.decode()


def services_of_compose_run_on_hosts_of_their_names():
    file, = _documents("compose.yaml")
    assert set(file) == {"services"} and len(file["services"]) == 3, file
    for service in file["services"].values():
        assert set(service) <= {"image", "command", "depends_on"} and shlex.split(service["command"])[0] == "softverbs", service
        assert set(service.get("depends_on", [])) <= set(file["services"]), service
    begun = " ".join(f"softverbs on {name} -- {service['command']} >/tmp/of-$$-{name} 2>&1 & p_{name}=$!;" for name, service in file["services"].items())
    ended = " ".join(f"wait $p_{name} || exit 1; cat /tmp/of-$$-{name}; rm /tmp/of-$$-{name};" for name in file["services"])
    out = _on_lab(",".join(file["services"]), f"{begun} {ended}")
    assert out.count("BW average") == 2 and "::ffff:10.77.0." in out, out


def the_pods_of_kubernetes_need_no_privilege():
    service, job = _documents("pod.yaml")
    pod = job["spec"]["template"]["spec"]
    assert service["kind"] == "Service" and job["kind"] == "Job" and service["metadata"]["name"] == pod["subdomain"], (service, job)
    assert service["spec"]["selector"] == job["spec"]["template"]["metadata"]["labels"], (service, job)
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in (*pod["initContainers"], *pod["containers"]):
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes, container
        assert not {"securityContext", "resources", "ports"} & set(container), container
    assert not {"hostNetwork", "hostPID", "securityContext"} & set(pod), pod


def the_pods_script_runs_on_hosts():
    _, job = _documents("pod.yaml")
    shell, option, script = job["spec"]["template"]["spec"]["containers"][0]["command"]
    assert (shell, option) == ("sh", "-c")
    script = shlex.quote(script.replace("/softverbs/bin/softverbs", "softverbs").replace("bandwidth-0.bandwidth", "h1"))
    out = _on_lab("2", f"JOB_COMPLETION_INDEX=0 softverbs on h1 -- sh -c {script} >/dev/null & JOB_COMPLETION_INDEX=1 softverbs on h2 -- sh -c {script} && wait $!")
    assert "BW average" in out, out


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
