package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
)

// plot is a chart of latencies over named places, on a logarithmic scale.
type plot struct {
	title  string
	places []string
	lines  []plotLine
}

// plotLine is one line of a plot, with a value for each place.
type plotLine struct {
	name   string
	values []float64 // milliseconds
}

// The measures of a plot, in pixels.
const (
	plotWidth  = 900
	plotLeft   = 80
	plotTop    = 80
	plotHeight = 320
	plotBottom = 220
)

var plotColours = []string{"#1b6ca8", "#d1495b", "#2e933c", "#e6a117", "#6a4c93", "#555555"}

// svg draws the plot.
func (p *plot) svg() []byte {
	low, high := p.decades()
	y := func(v float64) float64 {
		return plotTop + plotHeight*(float64(high)-math.Log10(v))/float64(high-low)
	}
	x := func(i int) float64 {
		return plotLeft + (float64(i)+0.5)*(plotWidth-plotLeft-20)/float64(len(p.places))
	}
	b := &bytes.Buffer{}
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		plotWidth, plotTop+plotHeight+plotBottom)
	fmt.Fprintf(b, `<rect width="100%%" height="100%%" fill="#fff"/>`+"\n")
	fmt.Fprintf(b, `<text x="%d" y="24" font-size="16">%s</text>`+"\n", plotLeft, html.EscapeString(p.title))
	for d := low; d <= high; d++ {
		at := y(math.Pow10(d))
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%g ms</text>`+"\n",
			plotLeft, at, plotWidth-20, plotLeft-8, at+4, math.Pow10(d))
	}
	for i, place := range p.places {
		fmt.Fprintf(b, `<text transform="translate(%.1f %d) rotate(-50)" text-anchor="end">%s</text>`+"\n",
			x(i)+4, plotTop+plotHeight+16, html.EscapeString(place))
	}
	for n, l := range p.lines {
		colour := plotColours[n%len(plotColours)]
		fmt.Fprintf(b, `<g fill="none" stroke="%s" stroke-width="2"><path d="`, colour)
		for i, v := range l.values {
			fmt.Fprintf(b, "%c%.1f %.1f", "ML"[min(i, 1)], x(i), y(positive(v)))
		}
		fmt.Fprintf(b, `"/></g>`)
		for i, v := range l.values {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s, %s: %.2f ms</title></circle>`,
				x(i), y(positive(v)), colour, html.EscapeString(l.name), html.EscapeString(p.places[i]), v)
		}
		fmt.Fprintf(b, "\n"+`<rect x="%d" y="40" width="12" height="12" fill="%s"/><text x="%d" y="50">%s</text>`+"\n",
			plotLeft+n*200, colour, plotLeft+n*200+18, html.EscapeString(l.name))
	}
	fmt.Fprintf(b, "</svg>\n")
	return b.Bytes()
}

// decades returns the powers of ten between which all values lie.
func (p *plot) decades() (low, high int) {
	least, most := math.Inf(1), 0.0
	for _, l := range p.lines {
		for _, v := range l.values {
			least, most = min(least, positive(v)), max(most, positive(v))
		}
	}
	if most == 0 {
		return 0, 1
	}
	low, high = int(math.Floor(math.Log10(least))), int(math.Ceil(math.Log10(most)))
	return low, max(high, low+1)
}

// positive keeps a value on a logarithmic scale.
func positive(v float64) float64 { return max(v, 0.001) }

// writePlots draws what the report holds into a folder.
func (r *report) writePlots(dir string) error {
	latency := &plot{title: fmt.Sprintf("Latency of creates under full load, %d connections", r.Connections)}
	for _, e := range r.Engines {
		if c := e.Comparison; c != nil {
			latency.places = quantileNames()
			if len(latency.lines) == 0 {
				latency.lines = append(latency.lines, plotLine{"nothing stored", c.Base.Quantiles})
			}
			latency.lines = append(latency.lines, plotLine{"Till on " + engineNames[e.Engine], c.Till.Quantiles})
		}
		if e.Lists != nil {
			if err := os.WriteFile(filepath.Join(dir, "lists-"+e.Engine+".svg"), e.Lists.plot(e.Engine).svg(), 0o644); err != nil {
				return err
			}
		}
	}
	if len(latency.lines) == 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, "latency.svg"), latency.svg(), 0o644)
}

// plot draws the pages of a list, with the naive way beside them.
func (l *lists) plot(engine string) *plot {
	p := &plot{title: fmt.Sprintf("Pages of %d payments of one client, %s", l.Rows, engineNames[engine])}
	p.lines = []plotLine{{name: "p50"}, {name: "p99"}, {name: "count(*) and OFFSET"}}
	for _, page := range l.Pages {
		p.places = append(p.places, page.Filter+", "+page.Where)
		for i, v := range []float64{page.P50Ms, page.P99Ms, page.NaiveMs} {
			p.lines[i].values = append(p.lines[i].values, v)
		}
	}
	return p
}
