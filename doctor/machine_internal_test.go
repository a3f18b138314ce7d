package doctor

import (
	"strings"
	"testing"
)

func TestOpenFilesLimit(t *testing.T) {
	t.Parallel()
	const limits = "Limit                     Soft Limit           Hard Limit           Units     \n" +
		"Max processes             63000                63000                processes \n" +
		"Max open files            1024                 524288               files     \n"
	if n, found := openFilesLimit(limits); !found || n != 1024 {
		t.Error(n, found)
	}
	for _, text := range []string{"", "Max open files", "Max open files unlimited unlimited files"} {
		if n, found := openFilesLimit(text); found {
			t.Errorf("%q is %d", text, n)
		}
	}
}

func TestDoctorOnInstances(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		versions map[string]int
		verdict  Severity
		says     string
	}{
		{nil, Fine, "none was seen"},
		{map[string]int{"v1.4.0": 2}, Fine, "2 of v1.4.0"},
		{map[string]int{"v1.4.0": 2, "v1.5.0": 1}, Risky, "2 of v1.4.0, 1 of v1.5.0"},
	} {
		d := &doctor{}
		d.addInstances(c.versions)
		if len(d.All) != 1 || d.All[0].Verdict != c.verdict || !strings.Contains(d.All[0].Detail, c.says) {
			t.Errorf("%v: %+v", c.versions, d.All)
		}
	}
}
