package api_test

import (
	"regexp"
	"strconv"
	"strings"
)

// names gives what differs from run to run a name that does not.
type names struct {
	values map[string]string // by name
	named  map[string]string // by value
	count  map[string]int
	fixed  map[string]bool // came with a request: the same in every run
}

func newNames() *names {
	return &names{map[string]string{}, map[string]string{}, map[string]int{}, map[string]bool{}}
}

func (n *names) know(name, value string) { n.values[name], n.named[value] = value, name }

var (
	nameInText = regexp.MustCompile(`\{[a-z_]+[0-9]*(\.id)?\}`)
	repeat     = regexp.MustCompile(`\{(.)\*([0-9]+)\}`)
	uuidText   = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`)
	timeText   = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{6}Z`)
	keyText    = regexp.MustCompile(`till_(live|test)_([0-9A-Za-z]{12})_[0-9A-Za-z]{49}`)
	receipt    = regexp.MustCompile(`SBX[0-9A-F]{18}`)
	secretText = regexp.MustCompile(`whsec_[0-9A-Za-z+/]{43}=`)
	stampText  = regexp.MustCompile(`"webhook-timestamp": "[0-9]+"`)

	// A callback and a poll that fall into one moment are one read or two.
	reads = regexp.MustCompile(`("(?:attempts|repeats)": )[1-9][0-9]*`)
)

// expand puts the values in for the names, and {x*9} nine times x.
func (n *names) expand(text string) string {
	text = nameInText.ReplaceAllStringFunc(text, func(s string) string {
		if v, ok := n.values[s[1:len(s)-1]]; ok {
			return v
		}
		return s
	})
	return repeat.ReplaceAllStringFunc(text, func(s string) string {
		m := repeat.FindStringSubmatch(s)
		times, _ := strconv.Atoi(m[2])
		return strings.Repeat(m[1], times)
	})
}

// given notes the ids that a request brought along.
func (n *names) given(request string) {
	for _, id := range uuidText.FindAllString(request, -1) {
		if n.named[id] == "" {
			n.fixed[id] = true
		}
	}
}

// hide puts the names in for the values.
func (n *names) hide(text string) string {
	for _, m := range keyText.FindAllStringSubmatch(text, -1) {
		if n.named[m[0]] == "" {
			n.count["key"]++
			name := "key" + strconv.Itoa(n.count["key"])
			n.know(name, m[0])
			n.know(name+".id", m[2])
		}
	}
	text = keyText.ReplaceAllStringFunc(text, func(key string) string { return "{" + n.named[key] + "}" })
	for value, name := range n.named {
		if strings.HasSuffix(name, ".id") {
			text = strings.ReplaceAll(text, value, "{"+name+"}")
		}
	}
	text = stampText.ReplaceAllString(n.number(text, secretText, "secret"), `"webhook-timestamp": "{seconds}"`)
	text = n.number(text, uuidText, "id")
	text = n.number(text, timeText, "time")
	return n.number(text, receipt, "receipt")
}

func (n *names) number(text string, pattern *regexp.Regexp, kind string) string {
	return pattern.ReplaceAllStringFunc(text, func(s string) string {
		if n.fixed[s] {
			return s
		}
		if n.named[s] == "" {
			n.count[kind]++
			n.know(kind+strconv.Itoa(n.count[kind]), s)
		}
		return "{" + n.named[s] + "}"
	})
}
