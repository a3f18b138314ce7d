package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
)

// plot is a chart of times over named places, on a logarithmic scale.
type plot struct {
	title  string
	across string // what the places are
	places []string
	lines  []plotLine
}

// plotLine is one line of a plot, with a value for each place.
type plotLine struct {
	name   string
	values []float64 // milliseconds
	dashed bool
}

// The measures of a plot, in pixels.
const (
	plotLeft   = 80
	plotTop    = 60
	plotWidth  = 620 // of the field
	plotHeight = 340 // of the field
	plotLegend = 330 // beside the field
	plotBottom = 70
)

var plotColours = []string{"#1b6ca8", "#d1495b", "#2e933c", "#e6a117", "#6a4c93", "#17a2a2", "#8c564b", "#e377c2", "#7f7f00", "#444444"}

// svg draws the plot.
func (p *plot) svg() []byte {
	low, high := p.decades()
	y := func(v float64) float64 {
		return plotTop + plotHeight*(float64(high)-math.Log10(v))/float64(high-low)
	}
	x := func(i int) float64 { return plotLeft + (float64(i)+0.5)*plotWidth/float64(len(p.places)) }
	b := &bytes.Buffer{}
	svgHead(b, plotLeft+plotWidth+plotLegend, plotTop+plotHeight+plotBottom, p.title)
	for d := low; d <= high; d++ {
		at := y(math.Pow10(d))
		fmt.Fprintf(b, `<path d="M%d %.1fh%d" stroke="#ccc"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			plotLeft, at, plotWidth, plotLeft-8, at+4, tick(d))
		for m := 2; m < 10 && d < high; m++ {
			fmt.Fprintf(b, `<path d="M%d %.1fh%d" stroke="#f0f0f0"/>`+"\n", plotLeft, y(float64(m)*math.Pow10(d)), plotWidth)
		}
	}
	fmt.Fprintf(b, `<text transform="translate(22 %d) rotate(-90)" text-anchor="middle">milliseconds, logarithmic</text>`+"\n", plotTop+plotHeight/2)
	for i, place := range p.places {
		fmt.Fprintf(b, `<path d="M%.1f %dv6" stroke="#888"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			x(i), plotTop+plotHeight, x(i), plotTop+plotHeight+22, html.EscapeString(place))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", plotLeft+plotWidth/2, plotTop+plotHeight+50, html.EscapeString(p.across))
	for n, l := range p.lines {
		p.line(b, n, l, x, y)
	}
	fmt.Fprintf(b, "</svg>\n")
	return b.Bytes()
}

// line draws one line with its entry in the legend.
func (p *plot) line(b *bytes.Buffer, n int, l plotLine, x func(int) float64, y func(float64) float64) {
	colour, dash := plotColours[n%len(plotColours)], ""
	if l.dashed {
		dash = ` stroke-dasharray="6 4"`
	}
	fmt.Fprintf(b, `<path fill="none" stroke="%s" stroke-width="2"%s d="`, colour, dash)
	for i, v := range l.values {
		fmt.Fprintf(b, "%c%.1f %.1f", "ML"[min(i, 1)], x(i), y(positive(v)))
	}
	fmt.Fprintf(b, `"/>`)
	for i, v := range l.values {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s, %s: %.2f ms</title></circle>`,
			x(i), y(positive(v)), colour, html.EscapeString(l.name), html.EscapeString(p.places[i]), v)
	}
	left, at := plotLeft+plotWidth+20, plotTop+10+n*24
	fmt.Fprintf(b, "\n"+`<path d="M%d %dh24" stroke="%s" stroke-width="3"%s/><text x="%d" y="%d">%s</text>`+"\n",
		left, at, colour, dash, left+32, at+4, html.EscapeString(l.name))
}

func svgHead(b *bytes.Buffer, width, height int, title string) {
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(b, `<rect width="100%%" height="100%%" fill="#fff"/>`+"\n")
	fmt.Fprintf(b, `<text x="20" y="28" font-size="16">%s</text>`+"\n", html.EscapeString(title))
}

// tick writes a power of ten.
func tick(d int) string { return fmt.Sprintf("%.*f", max(0, -d), math.Pow10(d)) }

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
