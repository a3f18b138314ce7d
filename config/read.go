package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"till"
)

// reader collects the values of a file and its mistakes.
type reader struct {
	o        Options
	dir      string
	lines    lineNumbers
	file     *File
	problems []Problem

	catalogue []*till.Method // with the file's changes
}

func (r *reader) problem(line int, text string, args ...any) {
	r.problems = append(r.problems, Problem{line, fmt.Sprintf(text, args...)})
}

// quoted matches what the TOML library quotes from a file. It may be a credential that
// should not be there.
var quoted = regexp.MustCompile("\"[^\"]*\"|'[^']*'|`[^`]*`")

// wrongType matches the TOML library's error for a value of a wrong type.
var wrongType = regexp.MustCompile(`^toml: (?:line \d+ )?\(last key "([^"]*)"\): (.*)$`)

func (r *reader) read(text []byte) {
	tree, ok := r.tree(text)
	if !ok {
		return
	}
	var top struct {
		LogLevel       string   `toml:"log_level"`
		TrustedProxies []string `toml:"trusted_proxies"`
		CommandEnv     []string `toml:"command_environment"`
		Callbacks      struct {
			TrustedProxies []string `toml:"trusted_proxies"` // the former place, with the same meaning
		} `toml:"callbacks"`
		Limits struct {
			Calls int `toml:"calls"`
		} `toml:"limits"`
		Console struct {
			HouseNetworks []string `toml:"house_networks"`
		} `toml:"console"`
		Refunds Refunds `toml:"refunds"`
		Backup  Backup  `toml:"backup"`
	}
	methods := r.tables(tree, "method", maxMethods)
	connections, routes := r.tables(tree, "connection", maxConnections), r.tables(tree, "route", maxRoutes)
	r.decode(tree, "", &top)
	r.trustedProxies(top.TrustedProxies, top.Callbacks.TrustedProxies)
	r.commandEnvironment(top.CommandEnv)
	r.file.HouseNetworks = r.networks("console.house_networks", top.Console.HouseNetworks)
	r.file.Calls = top.Limits.Calls
	r.logLevel(top.LogLevel)
	r.backup(top.Backup)
	r.checkRange("limits.calls", top.Limits.Calls, maxCalls)
	r.methods(methods)
	for i, t := range connections {
		r.connection(fmt.Sprintf("connection[%d]", i), t)
	}
	for i, t := range routes {
		r.route(fmt.Sprintf("route[%d]", i), t)
	}
	r.refunds(top.Refunds)
	r.checkAmbiguity()
}

// readMethods reads only the methods.
func (r *reader) readMethods(text []byte) {
	if tree, ok := r.tree(text); ok {
		r.methods(r.tables(tree, "method", maxMethods))
	}
}

// tree parses a file as TOML.
func (r *reader) tree(text []byte) (tree map[string]any, ok bool) {
	if err := toml.Unmarshal(text, &tree); err != nil {
		line, message := 1, err.Error()
		var p toml.ParseError
		if errors.As(err, &p) {
			line, message = p.Position.Line, p.Message
		}
		r.problem(line, "this is not TOML: %s", quoted.ReplaceAllString(message, "…"))
		return nil, false
	}
	r.lines = findLines(string(text))
	return tree, true
}

// tables removes an array of tables from the tree and returns it.
func (r *reader) tables(tree map[string]any, name string, most int) []map[string]any {
	v, ok := tree[name]
	delete(tree, name)
	if !ok {
		return nil
	}
	out, ok := v.([]map[string]any)
	if !ok {
		r.problem(r.lines.line(name), "%s is written as [[%s]], once for each", name, name)
		return nil
	}
	if len(out) > most {
		r.problem(r.lines.line(fmt.Sprintf("%s[%d]", name, most)), "there are more than %d of [[%s]]", most, name)
		return nil
	}
	return out
}

// decode decodes a table into a struct. A key that the struct does not have is a mistake.
// Each table is decoded separately: only then does the library keep the tables of an array
// apart.
func (r *reader) decode(table map[string]any, at string, into any) {
	path := func(key string) string { return strings.TrimPrefix(at+"."+key, ".") }
	text, err := toml.Marshal(table)
	if err != nil {
		r.problem(r.lines.line(at), "it cannot be read: %v", quoted.ReplaceAllString(err.Error(), "…"))
		return
	}
	meta, err := toml.Decode(string(text), into)
	if err != nil {
		key, message := "", err.Error()
		var p toml.ParseError
		if errors.As(err, &p) {
			key, message = p.LastKey, p.Message
		} else if m := wrongType.FindStringSubmatch(message); m != nil {
			key, message = m[1], m[2]
		}
		r.problem(r.lines.line(path(key)), "%s: %s", key, quoted.ReplaceAllString(message, "…"))
		return
	}
	unknown := map[string]bool{}
	for _, key := range meta.Undecoded() {
		name := key.String()
		unknown[name] = true
		if parent := strings.LastIndexByte(name, '.'); parent < 0 || !unknown[name[:parent]] {
			r.problem(r.lines.line(path(name)), "there is no key %s here", name)
		}
	}
}

// checkRange rejects a number out of bounds; 0 means absent.
func (r *reader) checkRange(path string, n, most int) {
	if n < 0 || n > most {
		r.problem(r.lines.line(path), "%s must be between 1 and %d", path[strings.LastIndexByte(path, '.')+1:], most)
	}
}

func (r *reader) connection(at string, table map[string]any) {
	var t struct {
		Name             string   `toml:"name"`
		Operator         string   `toml:"operator"`
		BaseURL          string   `toml:"base_url"`
		CallbackNetworks []string `toml:"callback_networks"`
		Limits           Limits   `toml:"limits"`
		Refunds          string   `toml:"refunds"`
	}
	table = maps.Clone(table)
	operator, _ := table["operator"].(string)
	settings := r.table(table, at, operator)
	statement := r.table(table, at, "statement")
	for _, other := range slices.Sorted(maps.Keys(r.o.Operators)) {
		if _, ok := table[other]; ok && r.o.Operators[operator] != nil {
			r.problem(r.lines.line(at+"."+other), "[connection.%s] is not for a connection to %s", other, operator)
		}
		delete(table, other)
	}
	before := len(r.problems)
	r.decode(table, at, &t)
	c := &Connection{Name: t.Name, Operator: t.Operator, Line: r.lines.line(at), Limits: t.Limits, Refunds: t.Refunds, Statement: statement}
	c.CallbackNetworks = r.networks(at+".callback_networks", t.CallbackNetworks)
	if t.Refunds != "" && !slices.Contains(RefundWays, t.Refunds) {
		r.problem(r.lines.line(at+".refunds"), "refunds is one of: %s", strings.Join(RefundWays, ", "))
	}
	r.checkRange(at+".limits.calls", t.Limits.Calls, maxCalls)
	r.checkRange(at+".limits.submit_per_second", t.Limits.SubmitPerSecond, maxRate)
	r.checkRange(at+".limits.submit_burst", t.Limits.SubmitBurst, maxRate)
	r.checkRange(at+".limits.check_per_second", t.Limits.CheckPerSecond, maxRate)
	r.checkRange(at+".limits.check_burst", t.Limits.CheckBurst, maxRate)
	switch {
	case len(r.problems) > before && t.Name == "": // its decoding failed
	case t.Name == "":
		r.problem(c.Line, "the connection has no name")
	case t.Name == till.SandboxConnection:
		r.problem(r.lines.line(at+".name"), "%q is the name of the connection that serves test clients; it needs no configuration", till.SandboxConnection)
	case !validName.MatchString(t.Name):
		r.problem(r.lines.line(at+".name"), "a name has at most 40 small letters, digits, - and _, and begins with a letter or digit")
	case r.file.Connection(t.Name) != nil:
		r.problem(r.lines.line(at+".name"), "%s is the name of the connection in line %d, too", t.Name, r.file.Connection(t.Name).Line)
	}
	r.operator(at, c, operator, t.BaseURL, settings)
	r.file.Connections = append(r.file.Connections, c)
}

// table removes a table from another and returns it; nil if there is none.
func (r *reader) table(from map[string]any, at, name string) map[string]any {
	v, ok := from[name]
	if t, isTable := v.(map[string]any); isTable {
		delete(from, name)
		return t
	}
	if ok && r.o.Operators[name] != nil {
		r.problem(r.lines.line(at+"."+name), "%s is a table: [connection.%s]", name, name)
		delete(from, name)
	}
	return nil
}

// operator reads the operator's settings.
func (r *reader) operator(at string, c *Connection, operator, baseURL string, table map[string]any) {
	known := r.o.Operators[operator]
	switch {
	case operator == "":
		r.problem(c.Line, "the connection has no operator; there are %s", r.operators())
		return
	case operator == till.SandboxConnection:
		r.problem(r.lines.line(at+".operator"), "the sandbox serves test clients, without a configuration, and never a live one")
		return
	case known == nil:
		r.problem(r.lines.line(at+".operator"), "there is no operator %q; there are %s", operator, r.operators())
		return
	}
	if table == nil {
		table = map[string]any{}
	}
	table = maps.Clone(table)
	if baseURL != "" {
		if _, twice := table["base_url"]; twice {
			r.problem(r.lines.line(at+".base_url"), "base_url stands here and in [connection.%s]", operator)
		}
		table["base_url"] = baseURL
	}
	c.Settings = known()
	before := len(r.problems)
	c.sources = r.secrets(at+"."+operator, table, c.Settings)
	r.decode(table, at+"."+operator, c.Settings)
	if len(r.problems) == before { // otherwise the same mistake would be reported twice
		r.validate(at, operator, c.Settings)
	}
}

// validate adds the mistakes that an adapter's Config reports, each as "key: what", with
// the key's line.
func (r *reader) validate(at, operator string, settings any) {
	v, ok := settings.(interface{ Validate() error })
	if !ok {
		return
	}
	err := v.Validate()
	if err == nil {
		return
	}
	wrong := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		wrong = joined.Unwrap()
	}
	for _, err := range wrong {
		key, _, _ := strings.Cut(err.Error(), ":")
		path := at + "." + operator + "." + key
		for _, name := range []string{at + "." + key, path + "_env", path + "_file", path + "_credential", path + "_command"} {
			if r.lines[name] > 0 {
				path = name
			}
		}
		r.problem(r.lines.line(path), "%v", err)
	}
}

func (r *reader) operators() string {
	names := slices.Sorted(maps.Keys(r.o.Operators))
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (r *reader) route(at string, table map[string]any) {
	var t struct {
		Method      string   `toml:"method"`
		Countries   []string `toml:"countries"`
		Currencies  []string `toml:"currencies"`
		Kind        string   `toml:"kind"`
		Clients     []string `toml:"clients"`
		Connections []string `toml:"connections"`
	}
	before := len(r.problems)
	r.decode(table, at, &t)
	if len(r.problems) > before {
		return
	}
	route := &Route{Line: r.lines.line(at), Method: t.Method, NamesCountries: len(t.Countries) > 0, Connections: t.Connections}
	switch t.Kind {
	case "", "both":
		route.Kinds = []till.SubjectKind{till.SubjectPayment, till.SubjectPayout}
	case string(till.SubjectPayment), string(till.SubjectPayout):
		route.Kinds = []till.SubjectKind{till.SubjectKind(t.Kind)}
	default:
		r.problem(r.lines.line(at+".kind"), "kind is payment, payout or both")
	}
	r.markets(at, route, t.Countries, t.Currencies)
	for _, text := range t.Clients {
		id, err := till.ParseID(text)
		if err != nil || slices.Contains(route.Clients, id) {
			r.problem(r.lines.line(at+".clients"), "%q is not the id of a client, or stands here twice", text)
		}
		route.Clients = append(route.Clients, id)
	}
	if len(t.Connections) == 0 {
		r.problem(route.Line, "the route leads nowhere: it needs connections = [\"…\"]")
	}
	for i, name := range t.Connections {
		switch {
		case r.file.Connection(name) == nil:
			r.problem(r.lines.line(at+".connections"), "there is no connection %q; there are %s", name, r.connections())
		case slices.Contains(t.Connections[:i], name):
			r.problem(r.lines.line(at+".connections"), "%s stands here twice", name)
		}
	}
	r.file.Routes = append(r.file.Routes, route)
}

// connections lists the file's connections.
func (r *reader) connections() string {
	var names []string
	for _, c := range r.file.Connections {
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// markets finds the countries and currencies of a route.
func (r *reader) markets(at string, route *Route, countries, currencies []string) {
	m := r.methodOf(route.Method)
	if m == nil {
		var codes []string
		for _, m := range r.catalogue {
			codes = append(codes, m.Code)
		}
		r.problem(r.lines.line(at+".method"), "there is no method %q; there are %s", route.Method, strings.Join(codes, ", "))
		return
	}
	for _, c := range countries {
		if !m.Serves(c) {
			r.problem(r.lines.line(at+".countries"), "%s is not served in %q; it is in %s", m.Code, c, strings.Join(m.Countries(), ", "))
		}
	}
	for _, c := range currencies {
		if !slices.ContainsFunc(m.Markets, func(k till.Market) bool { return k.Currency == c }) {
			r.problem(r.lines.line(at+".currencies"), "%s is not served in the currency %q", m.Code, c)
		}
	}
	for _, k := range m.Markets {
		if (len(countries) == 0 || slices.Contains(countries, k.Country)) && (len(currencies) == 0 || slices.Contains(currencies, k.Currency)) {
			route.Markets = append(route.Markets, k)
		}
	}
	if len(route.Markets) == 0 {
		r.problem(route.Line, "no country of the route has its currency")
	}
}

// checkAmbiguity rejects two routes for the same payments: only their order would decide,
// and nobody would notice.
func (r *reader) checkAmbiguity() {
	seen := map[routeKey]int{}
	for _, route := range r.file.Routes {
		told := map[int]bool{}
		route.eachKey(func(k routeKey) {
			if line := seen[k]; line > 0 && !told[line] {
				told[line] = true
				r.problem(route.Line, "the route in line %d is for %s in %s, too", line, k.method, k.country)
			}
			seen[k] = route.Line
		})
	}
}
