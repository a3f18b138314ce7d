package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

// checkSVG fails if a drawing is no XML, or if a point is nowhere.
func checkSVG(t *testing.T, svg []byte) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	if strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), "Inf") {
		t.Fatalf("a point is nowhere:\n%s", svg)
	}
}

func TestPlot(t *testing.T) {
	for name, p := range map[string]*plot{
		"two lines": {title: "a < b", across: "x & y", places: []string{"x & y", "z"}, lines: []plotLine{
			{name: "one", values: []float64{0.5, 20}}, {name: "two", values: []float64{3, 4000}, dashed: true}}},
		"one value":  {places: []string{"x"}, lines: []plotLine{{name: "one", values: []float64{1}}}},
		"a zero":     {places: []string{"x"}, lines: []plotLine{{name: "one", values: []float64{0}}}},
		"no lines":   {places: []string{"x"}},
		"no places":  {lines: []plotLine{{name: "one"}}},
		"all absent": {},
	} {
		t.Run(name, func(t *testing.T) { checkSVG(t, p.svg()) })
	}
}

func TestPlotScale(t *testing.T) {
	p := &plot{places: []string{"x", "y"}, lines: []plotLine{{name: "one", values: []float64{0.2, 3000}}}}
	if low, high := p.decades(); low != -1 || high != 4 {
		t.Errorf("from 10^%d to 10^%d, want -1 and 4", low, high)
	}
	for d, want := range map[int]string{-2: "0.01", 0: "1", 3: "1000"} {
		if got := tick(d); got != want {
			t.Errorf("tick %d is %q, want %q", d, got, want)
		}
	}
}

func TestBars(t *testing.T) {
	c := &bars{title: "a < b", rows: []string{"x", "only b"}, groups: []barGroup{
		{"a", map[string]spread{"x": {10, 5, 20}}},
		{"b", map[string]spread{"x": {30, 30, 30}, "only b": {1, 1, 1}}},
	}}
	svg := c.svg()
	checkSVG(t, svg)
	if n := strings.Count(string(svg), " per second<"); n != 3 {
		t.Errorf("%d bars have a value, want 3", n)
	}
	checkSVG(t, (&bars{}).svg())
}
