package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// series is one line of /metrics.
type series struct {
	labels [][2]string
	value  float64
}

func (s *series) label(name string) string {
	for _, l := range s.labels {
		if l[0] == name {
			return l[1]
		}
	}
	return ""
}

// scraped is one read of /metrics.
type scraped struct {
	at  time.Time
	all map[string][]*series // by name
}

// maxMetricLine is how long a line may be.
const maxMetricLine = 64 << 10

// parseMetrics reads Prometheus's text format, as our own server writes it.
func parseMetrics(r io.Reader, at time.Time) (*scraped, error) {
	out := &scraped{at, map[string][]*series{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxMetricLine)
	for lines.Scan() {
		text := lines.Text()
		if text == "" || text[0] == '#' {
			continue
		}
		name, s, err := parseSeries(text)
		if err != nil {
			return nil, fmt.Errorf("this is no page of metrics: %w", err)
		}
		out.all[name] = append(out.all[name], s)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("this is no page of metrics: %w", err)
	}
	if len(out.all["till_build_info"]) == 0 {
		return nil, fmt.Errorf("this is no page of Till's metrics")
	}
	return out, nil
}

// parseSeries reads name{label="value",…} value.
func parseSeries(text string) (string, *series, error) {
	bad := fmt.Errorf("a line that cannot be read: %.100q", text)
	s := &series{}
	end := strings.IndexAny(text, "{ ")
	if end <= 0 {
		return "", nil, bad
	}
	name, rest := text[:end], text[end:]
	if rest[0] == '{' {
		rest = rest[1:]
		for rest != "" && rest[0] != '}' {
			label, after, found := strings.Cut(rest, "=")
			quoted, err := strconv.QuotedPrefix(after)
			if !found || err != nil {
				return "", nil, bad
			}
			value, err := strconv.Unquote(quoted)
			if err != nil {
				return "", nil, bad
			}
			s.labels = append(s.labels, [2]string{label, value})
			rest = strings.TrimPrefix(after[len(quoted):], ",")
		}
		if rest == "" {
			return "", nil, bad
		}
		rest = rest[1:]
	}
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return "", nil, bad
	}
	s.value = value
	return name, s, nil
}

// sum adds up the series of a name that a condition holds for; nil holds for all.
func (r *scraped) sum(name string, of func(*series) bool) (n float64) {
	for _, s := range r.all[name] {
		if of == nil || of(s) {
			n += s.value
		}
	}
	return n
}

// most returns the largest of them.
func (r *scraped) most(name string, of func(*series) bool) (n float64) {
	for _, s := range r.all[name] {
		if of == nil || of(s) {
			n = max(n, s.value)
		}
	}
	return n
}

// values returns the values of a label, sorted.
func (r *scraped) values(name, label string) (out []string) {
	for _, s := range r.all[name] {
		out = append(out, s.label(label))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// difference is what happened between two reads. After a restart counters begin anew: then
// it is what has happened since.
type difference struct {
	before, after *scraped
	seconds       float64
}

func (d *difference) grown(name string, of func(*series) bool) float64 {
	was, is := d.before.sum(name, of), d.after.sum(name, of)
	if is < was {
		return is
	}
	return is - was
}

// rate returns how much a counter has grown in a second.
func (d *difference) rate(name string, of func(*series) bool) float64 {
	if d.seconds <= 0 {
		return 0
	}
	return d.grown(name, of) / d.seconds
}

// quantile returns the bucket that a share of a histogram's observations between the two
// reads lies in; 0 if there were none.
func (d *difference) quantile(share float64, name string, of func(*series) bool) float64 {
	all := d.grown(name+"_count", of)
	if all == 0 {
		return 0
	}
	bounds := map[float64]string{}
	for _, le := range d.after.values(name+"_bucket", "le") {
		if n, err := strconv.ParseFloat(le, 64); err == nil {
			bounds[n] = le
		}
	}
	highest := 0.0
	for _, bound := range slices.Sorted(func(yield func(float64) bool) {
		for n := range bounds {
			if !yield(n) {
				return
			}
		}
	}) {
		if math.IsInf(bound, 1) {
			break
		}
		highest = bound
		if d.grown(name+"_bucket", func(s *series) bool { return s.label("le") == bounds[bound] && (of == nil || of(s)) }) >= share*all {
			return bound
		}
	}
	return highest // more than the last bucket
}
