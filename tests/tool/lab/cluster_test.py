#!/usr/bin/env python3
"""The files of examples/cluster are what a parser takes them for, and their commands do on hosts of a lab what the page says (docs/how-to/clusters.md)."""
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import Skip, softverbs, told

EXAMPLES = f"{cases.TREE}/examples/cluster"


def _documents(name):
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise Skip("python3-yaml is not installed") from None
    with open(f"{EXAMPLES}/{name}", encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


# By the published models of Kubernetes, which its client for Python has: names and types of fields, and which must be there.
MODELS = """
import json, sys
try:
    from kubernetes.client import models
except ImportError:
    sys.exit(77)
KINDS = {("v1", "Service"): "V1Service", ("batch/v1", "Job"): "V1Job"}
def wrong(text):
    raise ValueError(text)

SCALARS = {"str": str, "int": int, "bool": bool, "object": object, "datetime": str}

def check(value, kind, where):
    if kind.startswith("list["):
        isinstance(value, list) or wrong(f"{where}: no list")
        for each in value:
            check(each, kind[5:-1], where)
    elif kind.startswith("dict("):
        isinstance(value, dict) or wrong(f"{where}: no map")
        for name, each in value.items():
            check(each, kind[5:-1].split(", ")[1], f"{where}.{name}")
    elif kind in SCALARS:
        isinstance(value, SCALARS[kind]) or wrong(f"{where}: no {kind}")
    else:
        model = getattr(models, kind)
        names = {field: name for name, field in model.attribute_map.items()}
        for field, each in value.items():
            field in names or wrong(f"{where}: {kind} has no field {field}")
            check(each, model.openapi_types[names[field]], f"{where}.{field}")
        model(**{names[field]: each for field, each in value.items()})

for documents in json.load(sys.stdin):
    complaint = ""
    try:
        for document in documents:
            check(document, KINDS[document["apiVersion"], document["kind"]], document["kind"])
    except ValueError as error:
        complaint = str(error)
    print(json.dumps(complaint))
"""


WRONG = ((1, ["spec"], "completionmode", "Indexed", "V1JobSpec has no field completionmode"),
         (1, ["spec"], "completions", "2", "Job.spec.completions: no int"),
         (1, ["spec", "template", "spec"], "containers", {}, "Job.spec.template.spec.containers: no list"),
         (0, ["spec"], "selector", ["bandwidth"], "Service.spec.selector: no map"),
         (1, ["spec", "template", "spec", "containers", 0], "image", 1, "no str"))


def the_pods_fields_are_those_of_kubernetes():
    files = [_documents("pod.yaml") for _ in range(1 + len(WRONG))]
    for changed, (document, path, field, value, _) in zip(files[1:], WRONG):
        at = changed[document]
        for step in path:
            at = at[step]
        at[field] = value
    done = subprocess.run([cases.PYTHON, "-c", MODELS], input=json.dumps(files), capture_output=True, text=True, check=False)
    if done.returncode == 77:
        raise Skip("python3-kubernetes is not installed")
    assert done.returncode == 0, told(done)
    right, *complaints = map(json.loads, done.stdout.splitlines())
    assert right == "" and all(said in complaint for (*_, said), complaint in zip(WRONG, complaints)), told(done)


def compose_itself_takes_the_file():
    if not shutil.which("docker-compose"):
        raise Skip("docker-compose is not installed")
    with open(f"{EXAMPLES}/compose.yaml", encoding="utf-8") as file:
        text = file.read()
    for changed, status in ((text, 0), (text.replace("depends_on", "depends"), 1), (text.replace("[server]", "[servant]"), 1)):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/compose.yaml", "w", encoding="utf-8") as file:
                file.write(changed)
            done = subprocess.run(["docker-compose", "-f", f"{folder}/compose.yaml", "config"], capture_output=True, check=False)
            assert done.returncode == status and (status or b"ib_write_bw -x 1 server" in done.stdout), told(done)


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
