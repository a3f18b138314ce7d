package deploy_test

import (
	"fmt"
	"strings"
	"testing"

	"till/config"
)

// settingsOf returns the settings that kustomization.yaml gives to all pods.
func settingsOf(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	generators, _ := at(documents(t, "k8s/kustomization.yaml")[0], "configMapGenerator").([]any)
	for _, g := range generators {
		literals, _ := at(g, "literals").([]any)
		for _, l := range literals {
			name, value, _ := strings.Cut(l.(string), "=")
			out[name] = value
		}
	}
	return out
}

// A live operator needs a configuration and credentials. Every pod that serves, verifies or
// reconciles has both in one folder, from where the settings take them.
func TestKubernetesRunsALiveOperator(t *testing.T) {
	t.Parallel()
	settings := settingsOf(t)
	for name, want := range map[string]string{"TILL_CONFIG": "/etc/till/till.toml", "TILL_SECRET_FILE": "/etc/till/secret", "TILL_ADMIN_TOKEN_FILE": "/etc/till/admin-token"} {
		if settings[name] != want {
			t.Errorf("%s is %q, want %q", name, settings[name], want)
		}
	}
	commands := ""
	for _, file := range []string{"api.yaml", "worker.yaml", "verify.yaml", "reconcile.yaml"} {
		o := documents(t, "k8s/"+file)[0]
		spec := at(o, "spec", "template", "spec")
		if o["kind"] == "CronJob" {
			spec = at(o, "spec", "jobTemplate", "spec", "template", "spec")
		}
		c := at(spec, "containers").([]any)[0]
		commands += fmt.Sprint(at(c, "args"))
		if text := fmt.Sprint(at(c, "envFrom")); !strings.Contains(text, "till-settings") {
			t.Errorf("%s has no settings: %s", file, text)
		}
		mounts, volumes := fmt.Sprint(at(c, "volumeMounts")), fmt.Sprint(at(spec, "volumes"))
		for _, want := range []string{"configMap:map[name:till]", "till-credentials", "path:secret", "path:admin-token"} {
			if !strings.Contains(volumes, want) || !strings.Contains(mounts, "mountPath:/etc/till ") {
				t.Errorf("%s: its folder lacks %s: %s %s", file, want, mounts, volumes)
			}
		}
	}
	if !strings.Contains(commands, "[reconcile --connection ") {
		t.Errorf("no job reconciles: %s", commands)
	}
	if migrate := read(t, "k8s/migrate.yaml"); strings.Contains(migrate, "configMap") {
		t.Error("the Job refers to generated settings: apply would fail after each change of them")
	}
}

// Where a proxy stands in front, its addresses are believed, and nobody else's: behind one
// that is not named all visitors are one address.
func TestManifestsNameTheProxy(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"k8s/till.toml", "compose/till.toml", "deb/till.toml"} {
		f, err := config.Parse(path, []byte(read(t, path)), config.Options{})
		if err != nil || len(f.TrustedProxies) == 0 {
			t.Errorf("%s: %v, error %v", path, f, err)
		}
	}
	gateway := at(documents(t, "compose.yaml")[0], "networks", "default", "ipam", "config").([]any)[0].(object)["gateway"]
	if !strings.Contains(read(t, "compose/till.toml"), fmt.Sprintf("\"%v/32\"", gateway)) {
		t.Errorf("compose/till.toml does not name the gateway %v", gateway)
	}
}

// The admin address is on this machine alone, or has a token.
func TestTheAdminAddressIsNotOpen(t *testing.T) {
	t.Parallel()
	settings := settingsOf(t)
	if !strings.HasPrefix(settings["TILL_ADMIN_LISTEN"], "127.") && settings["TILL_ADMIN_TOKEN_FILE"] == "" {
		t.Error("Kubernetes opens the admin address without a token")
	}
	environment := at(documents(t, "compose.yaml")[0], "services", "till", "environment")
	token := at(environment, "TILL_ADMIN_TOKEN_FILE")
	if token == nil {
		t.Error("compose opens the admin address without a token")
	}
	scrape := at(documents(t, "prometheus/prometheus.yml")[0], "scrape_configs").([]any)[0]
	if at(scrape, "authorization", "credentials_file") != token {
		t.Errorf("Prometheus reads with %v, Till takes %v", at(scrape, "authorization"), token)
	}
	if !strings.Contains(read(t, "docker/Dockerfile"), "TILL_ADMIN_LISTEN=127.0.0.1:8081") {
		t.Error("the image opens the admin address without a token")
	}
}

// No image has a name that means another program tomorrow, and no service has a password
// that everybody knows.
func TestImagesAndPasswords(t *testing.T) {
	t.Parallel()
	services, _ := at(documents(t, "compose.yaml")[0], "services").(object)
	for name, s := range services {
		image, _ := at(s, "image").(string)
		if _, tag, found := strings.Cut(image, ":"); !found || strings.HasPrefix(tag, "latest") {
			t.Errorf("%s runs the image %q", name, image)
		}
	}
	images, _ := at(documents(t, "k8s/kustomization.yaml")[0], "images").([]any)
	for _, i := range images {
		if tag := at(i, "newTag"); tag == nil || tag == "latest" {
			t.Errorf("Kubernetes runs %v", i)
		}
	}
	for name, path := range map[string][]string{"grafana": {"environment", "GF_SECURITY_ADMIN_PASSWORD"}, "postgres": {"environment", "POSTGRES_PASSWORD"}} {
		if text, _ := at(services[name], path...).(string); !strings.Contains(text, ":?") {
			t.Errorf("%s starts with the password %q", name, text)
		}
	}
}

// What git does not keep, a developer's data and keys, does not go into an image's build.
func TestTheBuildTakesNoData(t *testing.T) {
	t.Parallel()
	ignored := "\n" + read(t, "../.dockerignore")
	for _, line := range strings.Fields(read(t, "../.gitignore")) {
		kept, again := strings.CutPrefix(line, "!")
		want := strings.TrimPrefix(kept, "/")
		if !strings.HasPrefix(kept, "/") {
			want = "**/" + want
		}
		if again {
			want = "!" + want
		}
		if !strings.Contains(ignored, "\n"+want+"\n") {
			t.Errorf(".dockerignore lacks %s", want)
		}
	}
	for _, pattern := range []string{"**/*.db", "**/*.secret", "**/.env"} {
		if !strings.Contains(ignored, "\n"+pattern+"\n") {
			t.Errorf(".dockerignore lacks %s", pattern)
		}
	}
}
