package logs_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"till/internal/logs"
	"till/store/admin"
)

// What must never be read in a log (I13).
const (
	canaryKey    = "till_live_AbCdEf123456_zYxWvUtSrQpOnMlKjIhGfEdCbA9876543210aBcDeFgH1234567"
	canarySecret = "whsec_Q2FuYXJ5K0NhbmFyeS9DYW5hcnk="
	canaryPhone  = "242069990001"
)

type person struct {
	Name  string
	Phone string
}

type secretive struct{ text string }

func (s secretive) LogValue() slog.Value { return slog.StringValue(s.text) }

type stringer struct{ text string }

func (s stringer) String() string { return s.text }

func TestNoCanaryReachesALog(t *testing.T) {
	t.Parallel()
	for _, json := range []bool{false, true} {
		t.Run(fmt.Sprintf("json %v", json), func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			log := logs.New(&out, json, slog.LevelDebug)
			for _, canary := range []string{canaryKey, canarySecret, canaryPhone} {
				sing(log, canary)
			}
			log.Info("a number", "phone", int64(242069990001), "customer_id", uint64(242069990001))
			log.Info("a local number", "phone", "069990001")
			log.Info("an odd one", slog.Group("customer", "any", "call 069990001 please"))
			log.WithGroup("recipient").Info("grouped", "value", "069990001")

			lines := strings.Count(out.String(), "\n")
			if lines < 30 {
				t.Errorf("got %d lines, want all that were logged", lines)
			}
			for _, forbidden := range []string{canaryKey, canaryKey[20:], canarySecret, canarySecret[10:], canaryPhone, "069990001"} {
				if strings.Contains(out.String(), forbidden) {
					t.Errorf("the log holds %q:\n%s", forbidden, out.String())
				}
			}
		})
	}
}

// sing logs a text in every way there is.
func sing(log *slog.Logger, canary string) {
	err := fmt.Errorf("outer: %w", errors.New("inner "+canary))
	log.Info("message " + canary)
	log.Debug("in quotes '" + canary + "', (" + canary + ")")
	log.Warn("attribute", "value", canary, "url", "https://x/?a="+canary+"&b=1")
	log.Error("error", "error", err)
	log.Info("joined", "error", errors.Join(err, err))
	log.Info("group", slog.Group("a", slog.Group("b", "c", canary, "d", err)))
	log.Info("valuer", "v", secretive{canary}, "s", stringer{canary})
	log.Info("struct", "v", person{"Mado", canary}, "p", &person{"Mado", canary})
	log.Info("map", "v", map[string]any{"x": []string{canary}})
	log.Info("bytes", "v", []byte(canary), "panic", any(canary))
	log.With("kept", canary, "error", err).WithGroup("g").With("more", canary).Info("with", "x", canary)
}

func TestRedactKeepsWhatIsNotPrivate(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"",
		"payment 01a1dd44-eca1-733e-9b08-242061234567 succeeded",
		"took 242061234567ns",
		"at 2026-11-15T03:34:04.193830Z, 1763177644193830",
		"0.242061234567",
		"sha256:a242061234567b",
		"amount 5000",
		"till_live and whsec_",
		"order 12345678",
	} {
		if got := logs.Redact(text); got != text {
			t.Errorf("Redact(%q) = %q, want it unchanged", text, got)
		}
	}
	for text, want := range map[string]string{
		"pay +242061234567.":              "pay +242******567.",
		"tel-254712345678":                "tel-254******678",
		"key till_test_abcdEFGH_0123xyz!": "key till_test_***!",
		"whsec_AAAA+/==":                  "whsec_***",
	} {
		if got := logs.Redact(text); got != want {
			t.Errorf("Redact(%q) = %q, want %q", text, got, want)
		}
	}
}

// A value of a named type of text was logged as JSON inside quotes:
// from="\"passing\"".
func TestANamedTextIsLoggedAsText(t *testing.T) {
	t.Parallel()
	for asJSON, want := range map[bool]string{false: " from=passing to=\"not passing\"\n", true: `"from":"passing","to":"not passing"}` + "\n"} {
		var b bytes.Buffer
		logs.New(&b, asJSON, slog.LevelInfo).Info("changed", "from", admin.BreakerState("passing"), "to", admin.BreakerState("not passing"))
		if !strings.HasSuffix(b.String(), want) {
			t.Errorf("the log is %q, want %q at its end", b.String(), want)
		}
	}
}
