// Package deploy_test checks the files with which Till is installed. No engine for
// containers and no cluster is needed: what they would read is read here.
package deploy_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	yaml "github.com/oasdiff/yaml3"
)

// maxExposure is the highest score of 'systemd-analyze security' that a unit may have.
const maxExposure = 1.5

func TestUnitsAreHardened(t *testing.T) {
	t.Parallel()
	units, err := filepath.Glob("systemd/*.service")
	if err != nil || len(units) != 3 {
		t.Fatalf("%v, %v", units, err)
	}
	analyze, err := exec.LookPath("systemd-analyze")
	for _, unit := range units {
		text, readErr := os.ReadFile(unit)
		if readErr != nil {
			t.Fatal(readErr)
		}
		for _, want := range []string{"User=till\n", "NoNewPrivileges=yes\n", "CapabilityBoundingSet=\n", "ProtectSystem=strict\n", "MemoryDenyWriteExecute=yes\n",
			"SystemCallFilter=@system-service\n", "UMask=0077\n", "StateDirectoryMode=0700\n"} {
			if !strings.Contains(string(text), "\n"+want) {
				t.Errorf("%s lacks %s", unit, want)
			}
		}
		if err != nil {
			t.Logf("%s is not scored: there is no systemd-analyze", unit)
			continue
		}
		out, err := exec.Command(analyze, "security", "--offline=true", "--no-pager", unit).CombinedOutput()
		m := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`).FindSubmatch(out)
		if m == nil {
			t.Errorf("%s: %v: %s", unit, err, out)
			continue
		}
		if score, _ := strconv.ParseFloat(string(m[1]), 64); score > maxExposure {
			t.Errorf("%s is exposed by %.1f, at most %.1f is allowed", unit, score, maxExposure)
		} else {
			t.Logf("%s: %.1f", unit, score)
		}
	}
}

// The socket's name is one that the program knows, and the service needs it.
func TestTheSocketHasTheServersName(t *testing.T) {
	t.Parallel()
	socket, err1 := os.ReadFile("systemd/till.socket")
	service, err2 := os.ReadFile("systemd/till.service")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(socket), "\nFileDescriptorName=api\n") || !strings.Contains(string(service), "\nRequires=till.socket\n") || !strings.Contains(string(service), "\nType=notify\n") {
		t.Error("the service does not take over its socket")
	}
}

// object is a part of a YAML document.
type object = map[string]any

func documents(t *testing.T, path string) (out []object) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var o object
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, o)
	}
}

// at returns the value at a path, nil if it is not there.
func at(v any, path ...string) any {
	for _, name := range path {
		o, ok := v.(object)
		if !ok {
			return nil
		}
		v = o[name]
	}
	return v
}

func TestManifests(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, r := range at(documents(t, "k8s/kustomization.yaml")[0], "resources").([]any) {
		listed = append(listed, r.(string))
	}
	files, err := filepath.Glob("k8s/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, path := range files {
		name := filepath.Base(path)
		if name == "kustomization.yaml" {
			continue
		}
		if !slices.Contains(listed, name) {
			t.Errorf("%s is not in kustomization.yaml", name)
		}
		for _, o := range documents(t, path) {
			kind, _ := o["kind"].(string)
			kinds[kind]++
			if o["apiVersion"] == nil || at(o, "metadata", "name") == nil {
				t.Errorf("%s: a %s without a version or a name", name, kind)
			}
			switch kind {
			case "Deployment", "Job":
				checkPod(t, name, at(o, "spec", "template"), kind == "Deployment")
			case "CronJob":
				checkPod(t, name, at(o, "spec", "jobTemplate", "spec", "template"), false)
			}
			if kind == "Deployment" && fmt.Sprint(at(o, "spec", "selector", "matchLabels")) != fmt.Sprint(at(o, "spec", "template", "metadata", "labels")) {
				t.Errorf("%s selects other pods than it makes", name)
			}
		}
	}
	for kind, n := range map[string]int{"Deployment": 2, "PodDisruptionBudget": 2, "Service": 1, "NetworkPolicy": 1, "Job": 1, "CronJob": 2, "PersistentVolumeClaim": 1, "Namespace": 1} {
		if kinds[kind] != n {
			t.Errorf("there are %d of %s, want %d", kinds[kind], kind, n)
		}
	}
}

// checkPod holds a pod to the restricted level of Kubernetes, and a serving one to its
// probes and to a stop that drains.
func checkPod(t *testing.T, name string, template any, serves bool) {
	t.Helper()
	spec := at(template, "spec")
	if at(spec, "securityContext", "runAsNonRoot") != true || at(spec, "securityContext", "seccompProfile", "type") != "RuntimeDefault" || at(spec, "automountServiceAccountToken") != false {
		t.Errorf("%s: the pod is not restricted", name)
	}
	containers, _ := at(spec, "containers").([]any)
	if len(containers) != 1 {
		t.Fatalf("%s has %d containers", name, len(containers))
	}
	c := containers[0]
	if at(c, "securityContext", "allowPrivilegeEscalation") != false || at(c, "securityContext", "readOnlyRootFilesystem") != true ||
		fmt.Sprint(at(c, "securityContext", "capabilities", "drop")) != "[ALL]" || at(c, "resources", "limits", "memory") == nil {
		t.Errorf("%s: the container is not restricted", name)
	}
	if !serves {
		return
	}
	for probe, path := range map[string]string{"startupProbe": "/readyz", "readinessProbe": "/readyz", "livenessProbe": "/healthz"} {
		if at(c, probe, "httpGet", "path") != path || at(c, probe, "httpGet", "port") != "admin" {
			t.Errorf("%s: its %s is %v", name, probe, at(c, probe))
		}
	}
	if grace, _ := at(spec, "terminationGracePeriodSeconds").(int); grace < 60 || !strings.Contains(fmt.Sprint(at(c, "args")), "--drain 10s") {
		t.Errorf("%s stops in %d s, with %v", name, grace, at(c, "args"))
	}
}

func TestCompose(t *testing.T) {
	t.Parallel()
	o := documents(t, "compose.yaml")[0]
	services, _ := o["services"].(object)
	for name, profile := range map[string]string{"till": "<nil>", "postgres": "<nil>", "prometheus": "[watch]", "alertmanager": "[watch]", "grafana": "[watch]"} {
		if got := fmt.Sprint(at(services[name], "profiles")); services[name] == nil || got != profile {
			t.Errorf("%s has the profiles %s, want %s", name, got, profile)
		}
	}
	till := services["till"]
	if at(till, "read_only") != true || fmt.Sprint(at(till, "cap_drop")) != "[ALL]" {
		t.Error("till may write to its image, or has capabilities")
	}
	for name, s := range services {
		ports, _ := at(s, "ports").([]any)
		for _, p := range ports {
			if !strings.HasPrefix(p.(string), "127.0.0.1:") {
				t.Errorf("%s is open to other machines: %v", name, p)
			}
		}
	}
	// What is mounted from here is here.
	for name, s := range services {
		mounts, _ := at(s, "volumes").([]any)
		for _, m := range mounts {
			if path, _, _ := strings.Cut(m.(string), ":"); strings.HasPrefix(path, "./") && path != "./compose/admin-token" { // the guide has its reader make that
				if _, err := os.Stat(path); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	if url := at(documents(t, "grafana/provisioning/datasources/till.yaml")[0], "datasources").([]any)[0].(object)["url"]; url != "http://prometheus:9090" {
		t.Errorf("Grafana asks %v", url)
	}
	if path := at(documents(t, "grafana/provisioning/dashboards/till.yaml")[0], "providers").([]any)[0].(object)["options"].(object)["path"]; path != "/var/lib/grafana/dashboards" {
		t.Errorf("Grafana reads dashboards from %v", path)
	}
	for _, volume := range []string{"till", "postgres", "prometheus", "grafana"} {
		if _, found := at(o, "volumes").(object)[volume]; !found {
			t.Errorf("the volume %s is not declared", volume)
		}
	}
}

func TestDockerfile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docker/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nUSER 65532:65532\n", "CGO_ENABLED=0", `CMD ["/usr/bin/till", "health"]`, `ENTRYPOINT ["/usr/bin/till"]`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the Dockerfile lacks %q", want)
		}
	}
}
