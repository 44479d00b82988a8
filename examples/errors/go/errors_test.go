// Package errors tests error paths of a program, here ibv_devinfo: each test runs it under softverbs with rules.
package errors

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func run(t *testing.T, rules string) (string, error) {
	command := exec.Command("softverbs", "run", "--log", "warn", "--inject", rules, "--", "ibv_devinfo")
	command.Env = append(os.Environ(), "SOFTVERBS_DIR="+t.TempDir()+"/host") // processes of its own
	out, err := command.CombinedOutput()
	return string(out), err
}

func TestADeviceThatFailsIsReported(t *testing.T) {
	out, err := run(t, "when ibv_open_device: error EIO")
	if err == nil || !strings.Contains(out, "ibv_open_device of device 0: fails with EIO") {
		t.Fatal(err, out)
	}
}

func TestAPortThatIsDownIsShown(t *testing.T) {
	out, _ := run(t, "when ibv_query_port: set state DOWN")
	if !strings.Contains(out, "PORT_DOWN") {
		t.Fatal(out)
	}
}
