package main

import (
	"bytes"
	"fmt"
	"html"
)

// bars is a chart of rates: a row for each scenario, a bar in it for each
// engine that has it.
type bars struct {
	title  string
	rows   []string
	groups []barGroup
}

// barGroup is the values of one engine, by row.
type barGroup struct {
	name   string
	values map[string]spread
}

// The measures of bars, in pixels.
const (
	barLeft  = 230
	barWidth = 560
	barThick = 16
	barGap   = 14
	barTop   = 80
)

// svg draws the bars, with a thin line for the range of the rounds.
func (c *bars) svg() []byte {
	most := 1.0
	for _, g := range c.groups {
		for _, v := range g.values {
			most = max(most, v.Max)
		}
	}
	row := len(c.groups)*barThick + barGap
	b := &bytes.Buffer{}
	svgHead(b, barLeft+barWidth+160, barTop+len(c.rows)*row+20, c.title)
	for i, g := range c.groups {
		fmt.Fprintf(b, `<rect x="%d" y="42" width="12" height="12" fill="%s"/><text x="%d" y="53">%s</text>`+"\n",
			barLeft+i*140, plotColours[i%len(plotColours)], barLeft+i*140+18, html.EscapeString(g.name))
	}
	for n, name := range c.rows {
		top := barTop + n*row
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n",
			barLeft-10, top+len(c.groups)*barThick/2+4, html.EscapeString(name))
		for i, g := range c.groups {
			v, ok := g.values[name]
			if !ok {
				continue
			}
			at := top + i*barThick
			width := func(v float64) float64 { return barWidth * v / most }
			fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/><path d="M%.1f %dH%.1f" stroke="#222"/>`+
				`<text x="%.1f" y="%d">%.0f per second</text>`+"\n",
				barLeft, at, width(v.Median), barThick-2, plotColours[i%len(plotColours)],
				barLeft+width(v.Min), at+barThick/2-1, barLeft+width(v.Max), barLeft+width(v.Max)+8, at+barThick-4, v.Median)
		}
	}
	fmt.Fprintf(b, "</svg>\n")
	return b.Bytes()
}
