package engine

import (
	"strings"
	"testing"
)

func TestTraceableCode(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"", "DS00000", "500.001.1001", "PAYER_NOT_FOUND", "a-b.C_9", "123456", strings.Repeat("x", maxTraceableCode)} {
		if got := traceableCode(code); got != code {
			t.Errorf("%q became %q", code, got)
		}
	}
	for _, code := range []string{"1234567", "242069990001", "069.990.0001", "500.001.10010", "06 999 00 01", "1.2.3.4.5.6.7", "two words", "a/b", "a@b", "é", "a\nb", strings.Repeat("x", maxTraceableCode+1)} {
		if got := traceableCode(code); got != "" {
			t.Errorf("%q became %q", code, got)
		}
	}
}
