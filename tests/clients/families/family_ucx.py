"""UCX: its own measurement, and its examples, which compare."""
from row import Row

from programs import ucx
from librdmacm.applications import demonstrates_io, talks_over_ucx

PERFTEST, EXAMPLES = ("ucx-utils", "libucx0"), ("libucx-dev", "libucx0", "gcc")


def rows():
    for name, environment in ucx.TRANSPORTS.items():
        for test, sizes in ucx.TESTS.items():
            for size in sizes:
                yield Row("UCX", f"ucx_perftest -t {test} -s {size}, {name}", PERFTEST, "compares nothing; ends well",
                          lambda place, test=test, size=size, environment=environment: ucx.measures(place, test, size, environment),
                          short=(test, size, name) == ("tag_lat", "8", "rc_v"))
    for transports in ("rc_verbs", "ud_verbs", "rc_verbs,ud_verbs"):
        for api in ("stream", "tag", "am"):
            yield Row("UCX", f"ucp_client_server -c {api} over {transports}", EXAMPLES, "the text that arrives is the one that was sent",
                      lambda place, transports=transports, api=api: talks_over_ucx(place, transports, api))
        yield Row("UCX", f"ucp_client_server -c tag over {transports}, two hosts", EXAMPLES, "the text that arrives is the one that was sent",
                  lambda place, transports=transports: talks_over_ucx(place, transports, "tag"))
    for name, environment in ucx.TRANSPORTS.items():
        yield Row("UCX", f"ucx_perftest -t tag_lat -s 65536, {name}, two hosts", PERFTEST, "compares nothing; ends well",
                  lambda place, environment=environment: ucx.measures(place, "tag_lat", "65536", environment))
    yield Row("UCX", "io_demo -q", PERFTEST, "the program compares (-q)", demonstrates_io)
