package chart_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"till/console/chart"
)

// A drawing is well-formed whatever the texts and numbers are.
func TestDrawings(t *testing.T) {
	t.Parallel()
	hostile := `"><script>alert(1)</script>&`
	for name, values := range map[string][]int64{"usual": {100, 0, 250_000}, "none": nil, "zero": {0, 0, 0}, "huge": {1 << 61, 1 << 60, 3}} {
		c := &chart.Chart{ID: "days", Title: hostile, Slots: []string{hostile, "2", "3"}, Now: 2, Width: 624, Height: 276,
			Series: []chart.Series{{Name: hostile, Values: values}, {Name: "b", Values: values}},
			Label:  func(n int64) string { return strconv.FormatInt(n, 10) }, Value: func(int) string { return hostile }}
		for _, svg := range []string{string(c.Stacked()), string(c.Lines())} {
			if strings.Contains(svg, "<script") {
				t.Errorf("%s: a text became markup", name)
			}
			d := xml.NewDecoder(strings.NewReader(svg))
			for {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%s: %v in %s", name, err, svg)
				}
			}
			if n := strings.Count(svg, "data-value="); n != 3 {
				t.Errorf("%s: %d slots can be read, want 3", name, n)
			}
		}
	}
}

// The axis ends at a round number that is not below the greatest value.
func TestAxis(t *testing.T) {
	t.Parallel()
	for greatest, want := range map[int64]string{182_500: ">200000<", 3: ">3<", 0: ">2<", 250_000: ">250000<", 251_000: ">300000<", 105_000: ">150000<"} {
		c := &chart.Chart{ID: "a", Slots: []string{"1"}, Now: -1, Width: 600, Height: 276, Series: []chart.Series{{Values: []int64{greatest}}},
			Label: func(n int64) string { return strconv.FormatInt(n, 10) }, Value: func(int) string { return "" }}
		if svg := string(c.Stacked()); !strings.Contains(svg, want) {
			t.Errorf("up to %d: the axis does not end at %s", greatest, want)
		}
	}
}
