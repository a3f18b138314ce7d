package reconcile

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"till"
)

// readText reads a statement and returns its records, and why which line is
// broken.
func readText(tb testing.TB, m Mapping, text string) (*records, *statementFile, ReadCounts, map[uint32]string, error) {
	tb.Helper()
	f := &statementFile{layout: mustLayout(tb, m)}
	var c ReadCounts
	broken := map[uint32]string{}
	r, err := readStatement(tb.Context(), strings.NewReader(text), f, &c, func(line uint32, why string) error {
		if broken[line] != "" {
			tb.Errorf("line %d is broken twice", line)
		}
		broken[line] = why
		return nil
	}, func(int64) {})
	return r, f, c, broken, err
}

const plainHeader = "time,reference,external_id,receipt,amount,currency,status,direction\n"

// Every line that cannot be read is named with its number and its reason, and
// swallows none of its neighbours.
func TestBrokenLinesAreNamed(t *testing.T) {
	t.Parallel()
	good := "2026-11-15T08:00:00Z,a,b,R1,50,XAF,ok,in"
	for _, c := range []struct{ line, why string }{
		{`2026-11-15T08:00:00Z,a,b,R1,50,XAF,ok`, "7 fields instead of 8"},
		{good + ",", "9 fields instead of 8"},
		{strings.Repeat(",", 300), "more than 256 fields"},
		{strings.Replace(good, "50", "5x", 1), "the amount is not a number"},
		{strings.Replace(good, "50", "-50", 1), "the amount is negative"},
		{strings.Replace(good, "50", "0.00", 1), "the amount is zero"},
		{strings.Replace(good, "50", "50.5", 1), "more decimals than its currency"},
		{strings.Replace(good, "XAF", "FCFA", 1), `the currency "FCFA" is not known`},
		{strings.Replace(good, "XAF", "", 1), `the currency "" is not known`},
		{strings.Replace(good, "ok", "perhaps", 1), `the status "perhaps" is not known`},
		{strings.Replace(good, "ok", "", 1), `the status "" is not known`},
		{strings.Replace(good, ",in", ",sideways", 1), `the direction "sideways" is not known`},
		{strings.Replace(good, "2026-11-15T", "15/11/2026 ", 1), "not written as time_layout says"},
		{strings.Replace(good, "2026", "1926", 1), "not between 2000 and 2100"},
		{strings.Replace(good, "a,b", `"a,b`, 1), "a quote is not closed on its line"},
		{strings.Replace(good, "a,b", `"a"x,b`, 1), "a quote ends inside a field"},
		{strings.Replace(good, "a,b", `a",b`, 1), "a quote inside a field that is not quoted"},
		{strings.Replace(good, "a,b", "\xff,b", 1), "not UTF-8"},
		{strings.Replace(good, "a,b", "\x00,b", 1), "a NUL byte"},
		{strings.Replace(good, "R1", strings.Repeat("R", maxReceipt+1), 1), "the receipt is longer"},
		{strings.Replace(good, "a,b", strings.Repeat("a", maxStatementLine)+",b", 1), "longer than 64 KiB"},
		{strings.Replace(good, "a,b", strings.Repeat("a", 5*maxStatementLine)+",b", 1), "longer than 64 KiB"},
	} {
		for _, end := range []string{"\n", "\r\n"} {
			r, _, counts, broken, err := readText(t, Mapping{}, plainHeader+good+end+c.line+end+good)
			if err != nil {
				t.Fatal(err)
			}
			if len(broken) != 1 || !strings.Contains(broken[3], c.why) {
				t.Errorf("%.80q: got %v, want %q", c.line, broken, c.why)
			}
			if r.n != 2 || counts.Lines != 3 || counts.Broken != 1 || r.at(1).number != 4 {
				t.Errorf("%.80q: %d lines were read, %+v", c.line, r.n, counts)
			}
		}
	}
}

func TestStatementsAreRead(t *testing.T) {
	t.Parallel()
	id := till.NewID(5)
	none := 0
	text := "\xef\xbb\xbf" + `"#1","#2"` + "\n" // never read: the header is the second line
	text += "x;Status ; RECEIPT;reference;amount\r\n" +
		"\r\n" +
		`a;"Paid";"R ""1""";` + strings.ToUpper(id.String()) + `;-1500,5` + "\r\n" +
		"Total;;;;1500,5\r\n" +
		"b;failed;R2;" + strings.ReplaceAll(id.String(), "-", "") + ";1;"
	two := 2
	r, f, c, broken, err := readText(t, Mapping{HeaderLine: &two, Delimiter: ";", DecimalMark: ",", FixedCurrency: "KES", Negative: "reversed", SkipPrefixes: []string{"Total"}}, text)
	if err != nil {
		t.Fatal(err)
	}
	if c.Lines != 4 || c.Ignored != 2 || c.Broken != 1 || c.Digest != sha256.Sum256([]byte(text)) || len(broken) != 1 || r.n != 1 {
		t.Fatalf("%+v, %v", c, broken)
	}
	line, err := f.reread(bytes.NewReader([]byte(text)), r.at(0), make([]byte, maxStatementLine))
	if err != nil {
		t.Fatal(err)
	}
	got := []any{line.reference, line.receipt, r.money(r.at(0)), line.status, line.direction, line.number, line.keys[byReference]}
	want := []any{strings.ToUpper(id.String()), `R "1"`, till.Money{Minor: 150050, Currency: "KES"}, lineReversed, anyDirection, uint32(4), key(id)}
	if diff := cmp.Diff(fmt.Sprint(got...), fmt.Sprint(want...)); diff != "" {
		t.Error(diff)
	}
	if _, err := f.reread(bytes.NewReader([]byte(strings.Replace(text, "1500,5", "1500,6", 1))), r.at(0), make([]byte, maxStatementLine)); err != errChanged {
		t.Errorf("the file changed: %v", err)
	}

	r, _, _, broken, err = readText(t, Mapping{HeaderLine: &none, Receipt: "#1", Amount: "#2", FixedCurrency: "XAF", Negative: "outgoing"}, "R1,5\nR2,-6\nR3\n")
	if err != nil || r.n != 2 || len(broken) != 1 || r.at(1).direction != outgoing || r.at(1).status != lineSuccess {
		t.Errorf("without a header: %v, %d lines, %v", err, r.n, broken)
	}
}

func TestStatementsAreRefused(t *testing.T) {
	t.Parallel()
	ten := 10
	for _, c := range []struct {
		mapping Mapping
		text    string
		why     string
	}{
		{Mapping{}, "", "ends before line 1"},
		{Mapping{HeaderLine: &ten}, plainHeader, "ends before line 10"},
		{Mapping{}, "\xff\xfea\x00", "UTF-16"},
		{Mapping{}, "PK\x03\x04", "save it as CSV"},
		{Mapping{}, "reference,sum,currency\n", `amount: there is no column "amount" on line 1`},
		{Mapping{}, "amount,currency\n", "reference: there is no column"},
		{Mapping{}, "amount,reference\n", "currency: there is no column"},
		{Mapping{Receipt: "Receipt"}, "amount,currency,reference\n", `receipt: there is no column "Receipt"`},
		{Mapping{Amount: "#4"}, "amount,currency,reference\n", "amount: there is no column #4"},
		{Mapping{}, "amount,Amount,currency,reference\n", `two columns are called "amount"`},
		{Mapping{}, `"amount` + "\n", "a quote is not closed"},
		{Mapping{}, strings.Repeat("x", 2*maxStatementLine), "longer than 64 KiB"},
	} {
		if _, _, _, _, err := readText(t, c.mapping, c.text); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%.40q: got %v, want %q", c.text, err, c.why)
		}
	}
}

// A file that repeats one key is no slower than another, and every line of it
// is found.
func TestOneKeyAThousandTimes(t *testing.T) {
	t.Parallel()
	id := till.NewID(7)
	const n = 3 * chunkSize
	r := &records{}
	r.currencyIndex("XAF")
	for i := range n {
		line := record{number: uint32(i + 2), status: lineSuccess}
		line.keys[byReference] = key(id)
		if i%2 == 0 {
			line.keys[byExternalID] = key(till.NewID(till.Time(i)))
		}
		r.add(line)
	}
	r.build()
	found := r.indexes[byReference].find(key(id), nil)
	if len(found) != n || found[0] != n-1 || found[n-1] != 0 {
		t.Errorf("%d of %d lines were found", len(found), n)
	}
	if got := r.indexes[byReference].find(key{1}, nil); len(got) != 0 || r.indexes[byReceipt] != nil || r.indexes[byExternalID].entries != n/2 {
		t.Errorf("found %v under another key", got)
	}
	if got := r.indexes[byExternalID].find(r.at(4).keys[byExternalID], nil); len(got) != 1 || got[0] != 4 {
		t.Errorf("found %v instead of line 4", got)
	}
}

// FuzzStatement reads any bytes under several mappings: each line is read,
// ignored or broken, what was read is read again the same, and nothing panics.
func FuzzStatement(f *testing.F) {
	none := 0
	mappings := []Mapping{
		{}, {Delimiter: ";", DecimalMark: ",", Thousands: " ", TimeLayout: "DD/MM/YYYY hh:mm:ss", TimeZone: "+01:00", Negative: "outgoing"},
		{HeaderLine: &none, Reference: "#1", Amount: "#2", Time: "#3", FixedCurrency: "KES", TimeLayout: "unix", Negative: "reversed"},
		{AmountUnit: "minor", FixedCurrency: "XAF", SkipPrefixes: []string{"Total"}},
	}
	f.Add(uint8(0), plainHeader+"2026-11-15T08:00:00Z,a,b,R1,50,XAF,ok,in\n")
	f.Add(uint8(1), "time;reference;amount;currency\n15/11/2026 08:00:00;\"x\"\"y\";1 000,50;KES\r\n")
	f.Add(uint8(2), "00000000-0000-7000-8000-000000000000,-12.5,1794731400\n,,\n\"a")
	f.Add(uint8(3), "receipt,amount\nTotal,5\nR,5\n\xff,5")
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		m := mappings[int(which)%len(mappings)]
		r, p, c, broken, err := readText(t, m, text)
		if err != nil {
			return
		}
		if c.Lines != c.Ignored+c.Broken+int64(r.n) || int(c.Broken) != len(broken) {
			t.Fatalf("%d lines: %+v", r.n, c)
		}
		buffer := make([]byte, maxStatementLine)
		for i := range uint32(r.n) {
			l := r.at(i)
			if l.amount <= 0 || l.amount > till.MaxMinor || l.status == 0 || broken[l.number] != "" {
				t.Errorf("line %d is %+v", l.number, l)
			}
			if _, err := p.reread(strings.NewReader(text), l, buffer); err != nil {
				t.Errorf("line %d again: %v", l.number, err)
			}
		}
	})
}
