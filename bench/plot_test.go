package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"time"

	"till"
)

func TestPlot(t *testing.T) {
	for name, p := range map[string]*plot{
		"two lines":  {title: "a < b", places: []string{"x & y", "z"}, lines: []plotLine{{"one", []float64{0.5, 20}}, {"two", []float64{3, 4000}}}},
		"one value":  {places: []string{"x"}, lines: []plotLine{{"one", []float64{1}}}},
		"a zero":     {places: []string{"x"}, lines: []plotLine{{"one", []float64{0}}}},
		"no lines":   {places: []string{"x"}},
		"no places":  {lines: []plotLine{{"one", nil}}},
		"all absent": {},
	} {
		t.Run(name, func(t *testing.T) {
			svg := string(p.svg())
			d := xml.NewDecoder(strings.NewReader(svg))
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%v in\n%s", err, svg)
				}
			}
			if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
				t.Fatalf("a point is nowhere:\n%s", svg)
			}
		})
	}
}

func TestListFilters(t *testing.T) {
	from := till.TimeOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for _, f := range listFilters(from, from.Add(listDays*24*time.Hour)) {
		if f.filter.From > f.filter.To || f.filter.From.IsZero() != f.filter.To.IsZero() {
			t.Errorf("%s: from %v to %v", f.name, f.filter.From, f.filter.To)
		}
		if q := f.query(); !strings.Contains(q, "limit=20") || strings.Contains(q, "status=&") {
			t.Errorf("%s: query %s", f.name, q)
		}
	}
}
