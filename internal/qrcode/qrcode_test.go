package qrcode

import (
	"strings"
	"testing"

	"rsc.io/qr"
)

const link = "https://pay.example.com/console/join/0123456789012345678901234567890123456789012"

// Each module of the drawing is the code's, and the border is light.
func TestBlocks(t *testing.T) {
	t.Parallel()
	text, err := Blocks(link)
	if err != nil {
		t.Fatal(err)
	}
	code, err := qr.Encode(link, qr.L)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		for x, r := range []rune(line) {
			for half, light := range []bool{r == '█' || r == '▀', r == '█' || r == '▄'} {
				if y := 2*i - 2 + half; light == code.Black(x-2, y) {
					t.Fatalf("the module at %d, %d is wrong", x-2, y)
				}
			}
		}
	}
}

func TestSVG(t *testing.T) {
	t.Parallel()
	text, err := SVG(link, `"><script>`)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "<script>") || !strings.HasPrefix(text, "<svg ") || strings.Contains(text, "style=") {
		t.Errorf("%.200s", text)
	}
	code, _ := qr.Encode(link, qr.M)
	dark := 0
	for y := range code.Size {
		for x := range code.Size {
			if code.Black(x, y) && (x == 0 || !code.Black(x-1, y)) {
				dark++
			}
		}
	}
	if got := strings.Count(text, "M"); got != dark {
		t.Errorf("%d runs of modules are drawn, and the code has %d", got, dark)
	}
}
