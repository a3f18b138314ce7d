package conform

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// mostCommits is what a shop's database writes for one payment: the wish beside the order,
// the counted try, and what became of it.
const mostCommits = 3

// collect and send cost three commits. The file store writes a line for each.
func TestCommits(t *testing.T) {
	t.Parallel()
	p, err := newPlay(Scenario{Name: "commits"}, shared, programs.files, "", t.TempDir())
	if p != nil {
		defer p.close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Step{
		{Do: "collect", raw: map[string]any{"do": "collect", "order": "o-1"}},
		{Do: "send", raw: map[string]any{"do": "send", "order": "o-1"}, Want: map[string]any{"state": "taken"}},
	} {
		if err := p.step(t.Context(), &s); err != nil {
			t.Fatalf("%s: %v", s.Do, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(p.folder, "shop", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the store has the files %v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if n := bytes.Count(text, []byte("\n")); err != nil || n == 0 || n > mostCommits {
		t.Errorf("collect and send are %d commits, at most %d; %v", n, mostCommits, err)
	}
}

// mostCost is what a create may take through the SDK, compared with a bare request, in
// percent.
const mostCost = 115

// TestCost makes so many creates (TILL_COST) through the SDK and so many bare ones, in
// turns, at a real service, and compares their medians.
func TestCost(t *testing.T) {
	n := size("TILL_COST", 20)
	program, err := costProgram()
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := shared.client(false)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program[0], append(program[1:], shared.base, key, strconv.Itoa(n))...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var took struct{ Bare, SDK []int }
	if err == nil {
		err = json.Unmarshal(out, &took)
	}
	if err != nil || len(took.Bare) != n || len(took.SDK) != n {
		t.Fatalf("%d and %d of %d: %v", len(took.Bare), len(took.SDK), n, err)
	}
	bare, sdk := median(took.Bare), median(took.SDK)
	t.Logf("%s: a bare create takes %d µs, one through the SDK %d µs: %d %% (medians of %d)", sdkName(), bare, sdk, sdk*100/bare, n)
	if os.Getenv("TILL_COST") != "" && sdk*100 > bare*mostCost {
		t.Errorf("the SDK takes %d %% of a bare request; the limit is %d %%", sdk*100/bare, mostCost)
	}
}

func median(values []int) int {
	slices.Sort(values)
	return max(values[len(values)/2], 1)
}

// costProgram returns the program of the SDK that makes the creates.
func costProgram() ([]string, error) {
	switch sdkName() {
	case "typescript":
		return []string{cmp.Or(os.Getenv("TILL_NODE"), "node"), filepath.Join("..", "..", "sdk", "typescript", "dist", "driver", "cost.js")}, nil
	case "python":
		interpreter, err := python()
		return []string{interpreter, filepath.Join("..", "..", "sdk", "python", "driver", "cost.py")}, err
	case "php":
		return []string{cmp.Or(os.Getenv("PHP"), "php"), filepath.Join("..", "..", "sdk", "php", "driver", "cost.php")}, nil
	}
	built, err := goBuild(programs.folder, "cost", "../../sdk/go", "./driver/cost")
	return []string{built}, err
}
