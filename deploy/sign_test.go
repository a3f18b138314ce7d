package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A release is signed if its commit has a signed tag, by the key that is given; what the
// guide has its reader run accepts it, and nothing that was changed since.
func TestAReleaseIsSigned(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"minisign", "git", "ssh-keygen"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s", tool)
		}
	}
	script, err := filepath.Abs("sign.sh")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)sample TestAReleaseIsSigned -->\n```sh\n(.*?)```").FindStringSubmatch(read(t, "../docs/guide/hardening.md"))
	if m == nil {
		t.Fatal("the guide does not say how to verify a release")
	}
	dir := t.TempDir()
	run := func(want bool, command string) {
		t.Helper()
		cmd := exec.Command("bash", "-ec", command)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "GIT_CONFIG_GLOBAL="+dir+"/gitconfig", "GIT_CONFIG_NOSYSTEM=1", "SIGN="+script)
		if out, err := cmd.CombinedOutput(); (err == nil) != want {
			t.Fatalf("%s\n%v\n%s", command, err, out)
		}
	}
	run(true, `minisign -G -W -p till.pub -s till.key >/dev/null
		ssh-keygen -q -t ed25519 -N "" -f tagger
		echo "ops@example.org $(cat tagger.pub)" >signers
		git config --global user.name Ops; git config --global user.email ops@example.org
		git config --global gpg.format ssh; git config --global user.signingkey "$PWD/tagger"; git config --global gpg.ssh.allowedSignersFile "$PWD/signers"
		git init -q .; git commit -q --allow-empty -m first; echo program >till.tar.gz; sha256sum till.tar.gz >SHA256SUMS`)
	run(false, `"$SIGN" . till.key`) // no tag
	run(true, `git tag v1.0.0`)
	run(false, `"$SIGN" . till.key`) // not a signed one
	run(true, `git tag -d v1.0.0 >/dev/null; git tag -s v1.0.0 -m v1.0.0; "$SIGN" . till.key`)
	run(true, m[1])
	run(true, `grep -q "till v1.0.0" SHA256SUMS.minisig; echo other >>till.tar.gz`)
	run(false, m[1])
	run(false, `"$SIGN" . till.key`) // the files are not those of the list
	run(true, `sha256sum till.tar.gz >SHA256SUMS`)
	run(false, m[1])
}

func TestMakeReleaseSigns(t *testing.T) {
	t.Parallel()
	if !strings.Contains(read(t, "../Makefile"), "deploy/sign.sh dist") {
		t.Error("make release does not sign")
	}
}
