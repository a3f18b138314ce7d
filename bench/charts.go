package main

import "fmt"

// plots draws what the report holds, by name.
func (r *report) plots() map[string][]byte {
	out := map[string][]byte{}
	if p := r.latencyPlot(); len(p.lines) > 0 {
		out["latency"] = p.svg()
	}
	if c := r.rateBars(); len(c.rows) > 0 {
		out["rates"] = c.svg()
	}
	for _, e := range r.Engines {
		if e.Lists != nil {
			out["lists-"+e.Engine] = e.Lists.plot(e.Engine).svg()
		}
	}
	return out
}

// latencyPlot shows creates under full load.
func (r *report) latencyPlot() *plot {
	p := &plot{title: fmt.Sprintf("Latency of creates under full load, %d connections", r.Connections),
		across: "share of requests that were at most so slow", places: quantileNames()}
	for i, e := range r.Engines {
		for _, f := range e.Creates {
			stored := f.Name != "nothing stored"
			if stored || i == 0 {
				name := f.Name
				if stored {
					name += ", " + engineNames[e.Engine]
				}
				p.lines = append(p.lines, plotLine{name: name, values: f.Quantiles, dashed: f.Name != "till"})
			}
		}
	}
	return p
}

// rateBars shows how often each thing is done in a second.
func (r *report) rateBars() *bars {
	c := &bars{title: "Done per second, median of the rounds and their range"}
	for _, e := range r.Engines {
		g := barGroup{name: engineNames[e.Engine], values: map[string]spread{}}
		add := func(name string, s spread) {
			if _, seen := g.values[name]; !seen && s.Median > 0 {
				g.values[name] = s
			}
		}
		sides := func(prefix string, all []figures) {
			for _, f := range all {
				add(prefix+f.Name, f.RatePerSec)
			}
		}
		sides("create: ", e.Creates)
		if e.Alone != nil {
			sides("create: ", e.Alone.Sides)
		}
		sides("create: ", e.Scale)
		if e.Life != nil {
			add("whole lives", e.Life.PerSec)
		}
		if e.Webhooks != nil {
			for _, f := range e.Webhooks.Sides {
				add("webhook: "+f.Name, f.PerSec)
			}
		}
		if e.Settlement != nil {
			add("settle in batches", e.Settlement.BatchedPerSec)
			add("settle one by one", e.Settlement.SinglePerSec)
		}
		c.groups = append(c.groups, g)
	}
	c.rows = rowsOf(c.groups)
	return c
}

// barOrder is how rows follow each other.
var barOrder = []string{
	"create: nothing stored", "create: till", "create: two instances", "create: batches of one",
	"create: nothing stored, alone", "create: till, alone", "create: small database", "create: large database",
	"whole lives", "settle in batches", "settle one by one",
	"webhook: " + webhookBaselineName, "webhook: " + webhookRunName, "webhook: " + besideDeadName,
}

func rowsOf(groups []barGroup) (rows []string) {
	for _, name := range barOrder {
		for _, g := range groups {
			if _, ok := g.values[name]; ok {
				rows = append(rows, name)
				break
			}
		}
	}
	return rows
}

// plot draws the pages of a list over their place in it, with the naive way
// beside them.
func (l *lists) plot(engine string) *plot {
	p := &plot{title: fmt.Sprintf("Pages of %s payments of one client, %s: p99", count(l.Rows), engineNames[engine]),
		across: "where the page is in its list"}
	naive := plotLine{name: "none, by count(*) and OFFSET", dashed: true}
	for i, page := range l.Pages {
		n := i / len(listPlaces)
		if n == 0 {
			p.places = append(p.places, page.Where)
			naive.values = append(naive.values, page.NaiveMs)
		}
		if i%len(listPlaces) == 0 {
			p.lines = append(p.lines, plotLine{name: page.Filter})
		}
		p.lines[n].values = append(p.lines[n].values, page.P99Ms)
	}
	p.lines = append(p.lines, naive)
	return p
}
