package doctor

import (
	"strings"
	"testing"

	"till/server"
	"till/store/storetest"
)

// What stops money, or may lose it, is wrong in the doctor's list; the other troubles are
// warnings.
func TestTroublesThatStopMoneyAreWrong(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			c := e.Config(t)
			s := storetest.Open(t, c)
			for _, cause := range storetest.Causes(t, c.Path) {
				for _, row := range cause.Rows {
					storetest.Raw(t, c.Path, row)
				}
			}
			d := &doctor{}
			st, err := server.ReadStatus(t.Context(), s, c.Path)
			if err != nil {
				t.Fatal(err)
			}
			d.addTroubles(st)
			stops := 0
			for i, trouble := range d.Troubles {
				want := Risky
				if trouble.Stops {
					stops, want = stops+1, Wrong
				}
				if f := d.All[i]; f.Name != "trouble" || f.Verdict != want || f.Detail != string(trouble.Name)+": "+trouble.Text {
					t.Errorf("%+v is told as %+v", trouble, f)
				}
			}
			if len(d.All) != len(d.Troubles) || stops < 5 || stops == len(d.Troubles) || d.Worst() != Wrong {
				t.Errorf("%d of %d troubles stop money, and the list is %+v", stops, len(d.Troubles), d.All)
			}
		})
	}
}

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
