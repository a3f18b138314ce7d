package chart

import (
	"html/template"
	"strconv"
	"strings"
)

// The sizes of a drawing, in its own units, which are pixels on a wide page.
const (
	axisRoom  = 64 // for the numbers of the axis, at the right
	labelRoom = 28 // for the names below
	topRoom   = 12
	barShare  = 62 // hundredths of a slot that its bar takes
	maxBar    = 48 // and no more
	maxSlots  = 120
	minLines  = 2
	maxLines  = 5
)

// Series is one row of numbers.
type Series struct {
	Name   string
	Values []int64 // one for each slot
}

// Chart is what is drawn. Texts are ready for people.
type Chart struct {
	ID     string   // of the drawing within its page; letters only
	Title  string   // a sentence that says what the chart shows
	Slots  []string // the names below, one for each place
	Now    int      // the slot that is named in bold; -1: none
	Series []Series // at most MaxSeries; further ones are left out

	// Label returns the number of the axis, and Value the text that is shown
	// for a slot under the pointer.
	Label func(n int64) string
	Value func(slot int) string

	Width, Height int

	// Whole drawings shrink on a narrow screen. Others show their last slots there, in
	// the same size.
	Whole bool
}

// MaxSeries is how many series can be distinguished.
const MaxSeries = 6

// drawing is an SVG under construction. Every text goes through escape.
type drawing struct{ b strings.Builder }

func (d *drawing) add(parts ...any) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			d.b.WriteString(p)
		case int:
			d.b.WriteString(strconv.Itoa(p))
		case int64:
			d.b.WriteString(strconv.FormatInt(p, 10))
		}
	}
}

// escape makes a text safe within SVG, in an attribute too.
func escape(s string) string { return template.HTMLEscapeString(s) }

// plot is where the values lie.
type plot struct {
	c                        *Chart
	left, right, top, bottom int
	step, max                int64 // of the axis
	lines                    int   // above the zero line
	slots                    int
}

func (c *Chart) plot(max int64) *plot {
	p := &plot{c: c, left: 0, right: c.Width - axisRoom, top: topRoom, bottom: c.Height - labelRoom, slots: min(len(c.Slots), maxSlots)}
	p.step, p.lines = axis(max)
	p.max = p.step * int64(p.lines)
	return p
}

// axis returns how far the lines of an axis are apart, which is 1, 2 or 5 times a power
// of ten, and how many there are: as few as the greatest value needs, so that it
// is near the top.
func axis(greatest int64) (step int64, lines int) {
	for unit := int64(1); unit <= (1<<63-1)/10/maxLines/5; unit *= 10 {
		for _, k := range []int64{1, 2, 5} {
			if step = unit * k; step*maxLines >= greatest {
				return step, int(max(minLines, (greatest+step-1)/step))
			}
		}
	}
	return (1<<63 - 1) / maxLines, maxLines
}

// y returns how high a value lies.
func (p *plot) y(v int64) int {
	room := int64(p.bottom - p.top)
	if v > (1<<63-1)/1000 {
		return p.bottom - int(v/(p.max/room))
	}
	return p.bottom - int(v*room/p.max)
}

// x returns where a slot begins and how wide it is.
func (p *plot) x(slot int) (left, width int) {
	room := p.right - p.left
	a, b := p.left+room*slot/p.slots, p.left+room*(slot+1)/p.slots
	return a, b - a
}

func (p *plot) open(d *drawing) {
	fit := "xMaxYMid slice"
	if p.c.Whole {
		fit = "xMidYMid meet"
	}
	d.add(`<svg class="plot" viewBox="0 0 `, p.c.Width, ` `, p.c.Height, `" preserveAspectRatio="`, fit, `" role="img" aria-label="`, escape(p.c.Title), `">`,
		`<defs>`)
	for i := 1; i < min(len(p.c.Series), MaxSeries); i++ {
		d.add(`<pattern id="`, p.c.ID, i+1, `" width="6" height="6" patternUnits="userSpaceOnUse"><rect class="f`, i+1, `" width="6" height="6"/><path class="cut" d="`, patterns[i%len(patterns)], `"/></pattern>`)
	}
	d.add(`</defs>`)
	for i := range p.lines + 1 {
		v := p.step * int64(i)
		y, class := p.y(v), "grid"
		if i == 0 {
			class = "zero"
		}
		d.add(`<path class="`, class, `" d="M`, p.left, ` `, y, `.5H`, p.right, `"/><text x="`, p.c.Width, `" y="`, y+4, `" text-anchor="end">`, escape(p.c.Label(v)), `</text>`)
	}
}

// patterns distinguish series without colour: plain, hatched, dotted, crossed.
var patterns = []string{"", "M-1 7L7-1M-4 4L4-4M2 10L10 2", "M2 3h2", "M0 0L6 6M6 0L0 6"}

// marks are the patterns within 12 by 12, for legends.
var marks = []string{"", "M-1 7L7-1M-1 13L13-1M5 13L13 5", "M2 3h2M8 3h2M2 9h2M8 9h2", "M0 0L12 12M12 0L0 12M6 0L12 6M0 6L6 12M6 0L0 6M12 6L6 12"}

// Mark returns the pattern of a series as a path within 12 by 12; "": it is plain.
func Mark(series int) string { return marks[series%len(marks)] }

// names writes the names below the slots, as many as there is room for.
func (p *plot) names(d *drawing) {
	const room = 46
	every := max(1, (p.slots*room+p.right-p.left-1)/(p.right-p.left))
	for i := range p.slots {
		if (p.slots-1-i)%every != 0 {
			continue
		}
		left, width := p.x(i)
		class := ""
		if i == p.c.Now {
			class = ` class="now"`
		}
		d.add(`<text x="`, left+width/2, `" y="`, p.bottom+20, `" text-anchor="middle"`, class, `>`, escape(p.c.Slots[i]), `</text>`)
	}
}

// point begins a slot that shows its value under the pointer and the focus.
func (p *plot) point(d *drawing, slot int) {
	left, width := p.x(slot)
	d.add(`<g class="slot" tabindex="0" data-value="`, escape(p.c.Value(slot)), `"><rect class="hit" x="`, left, `" y="`, p.top, `" width="`, width, `" height="`, p.bottom-p.top, `"/>`)
}

func (p *plot) fill(i int) string {
	if i == 0 {
		return ` class="f1"`
	}
	return ` fill="url(#` + p.c.ID + strconv.Itoa(i+1) + `)"`
}

// Stacked draws a bar for each slot, in which the series lie on each other. One
// series makes plain bars, and equal slots of one series a histogram.
func (c *Chart) Stacked() template.HTML {
	var greatest int64
	for i := range min(len(c.Slots), maxSlots) {
		var sum int64
		for _, s := range c.series() {
			sum += s.at(i)
		}
		greatest = max(greatest, sum)
	}
	p, d := c.plot(greatest), &drawing{}
	p.open(d)
	for i := range p.slots {
		p.point(d, i)
		left, width := p.x(i)
		bar := min(max(2, width*barShare/100), maxBar)
		var below int64
		for k, s := range c.series() {
			v := s.at(i)
			if v <= 0 {
				continue
			}
			top, bottom := p.y(below+v), p.y(below)
			d.add(`<rect`, p.fill(k), ` x="`, left+(width-bar)/2, `" y="`, top, `" width="`, bar, `" height="`, max(1, bottom-top), `"/>`)
			below += v
		}
		d.add(`</g>`)
	}
	p.names(d)
	d.add(`</svg>`)
	return template.HTML(d.b.String()) // every text in it was escaped above
}

// Lines draws a line for each series.
func (c *Chart) Lines() template.HTML {
	var greatest int64
	for _, s := range c.series() {
		for _, v := range s.Values {
			greatest = max(greatest, v)
		}
	}
	p, d := c.plot(greatest), &drawing{}
	p.open(d)
	for k, s := range c.series() {
		d.add(`<path class="l`, k+1, `" d="`)
		for i := range p.slots {
			left, width := p.x(i)
			verb := "L"
			if i == 0 {
				verb = "M"
			}
			d.add(verb, left+width/2, ` `, p.y(max(0, s.at(i))))
		}
		d.add(`"/>`)
	}
	for i := range p.slots {
		p.point(d, i)
		d.add(`</g>`)
	}
	p.names(d)
	d.add(`</svg>`)
	return template.HTML(d.b.String()) // every text in it was escaped above
}

// series returns the series that are drawn.
func (c *Chart) series() []Series { return c.Series[:min(len(c.Series), MaxSeries)] }

// at returns the value of a slot, 0 where there is none.
func (s *Series) at(i int) int64 {
	if i < len(s.Values) {
		return s.Values[i]
	}
	return 0
}
