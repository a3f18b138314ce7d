package server

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"till/meter"
	"till/store"
)

// change is how an act of the audit log is written in the log of the service.
type change struct {
	what, to string
	detail   bool // the row's detail is made of our own words, and names nobody
}

// changes has the acts that change how the service works. Acts on money are not here: their
// record is the audit log. An endpoint that was disabled because it failed has its line
// already. The lines are made from the audit log, not beside each act: so commands and other
// instances are covered, and no act can be forgotten. The instance that chains a row writes its
// line; a crash in between loses the line, not the row.
var changes = map[string]change{
	"key.create":              {"key", "created", true},
	"key.rotate":              {"key", "rotated", true},
	"key.revoke":              {"key", "revoked", true},
	"key.exposed":             {"key", "exposed", true},
	"webhook_endpoint.create": {"endpoint", "created", false},
	"webhook_endpoint.patch":  {"endpoint", "changed", false},
	"webhook_endpoint.rotate": {"endpoint", "rotated", false},
	"webhook_endpoint.delete": {"endpoint", "deleted", false},
	"level.raise":             {"level", "raised", true},
	"client.create":           {"configuration", "client created", true},
	"client.profile":          {"configuration", "client changed", false},
	"client.suspend":          {"configuration", "client suspended", false},
	"client.resume":           {"configuration", "client resumed", false},
	"method.enable":           {"configuration", "method enabled", true},
	"method.disable":          {"configuration", "method disabled", true},
	"fee.set":                 {"configuration", "fee set", true},
	"fee.remove":              {"configuration", "fee removed", true},
	"payouts.hold":            {"configuration", "payouts held", false},
	"payouts.release":         {"configuration", "payouts released", false},
	"policy.factor":           {"configuration", "second factor changed", true},
	"role.set":                {"configuration", "role given", false},
	"role.remove":             {"configuration", "role taken away", false},
}

// maxActLines is how many lines about acts are written for one commit of the audit chain.
const maxActLines = 50

// logActs writes a line "changed" for each act that changes how the service works, by
// the API, the console, a command, or another instance.
func (s *Server) logActs(rows []*store.AuditRow) {
	written, others := 0, 0
	for _, a := range rows {
		c, found := changes[a.Action]
		if !found {
			continue
		}
		if written == maxActLines {
			others++
			continue
		}
		written++
		id := a.SubjectID
		if id.IsZero() {
			id = a.ClientID
		}
		why := "by " + actorKind(a.Actor)
		if c.detail && a.Detail != "" {
			why += ": " + a.Detail
		}
		s.logChanged(c.what, id.String(), "", c.to, why)
	}
	if others > 0 {
		s.logChanged("others", "", "", "", fmt.Sprintf("%d more acts are in the audit log", others))
	}
}

// actorKind says what kind of actor it was, or which key. People's names are in the audit
// log and not here.
func actorKind(actor string) string {
	switch kind, _, _ := strings.Cut(actor, ":"); kind {
	case "api":
		return actor
	case "cli":
		return "a command"
	case "engine":
		return "the service"
	}
	return "a person"
}

// noticeCases writes a line for each kind of case of which there are now more or fewer open
// ones. Lines about single cases would come by the thousand when an operator fails.
func (s *Server) noticeCases(values []meter.Value, write bool) {
	is := map[string]int64{}
	for _, v := range values {
		if v.Name == "cases_open" && len(v.Labels) == 2 {
			is[v.Labels[1]] += int64(v.Value)
		}
	}
	was := s.noticedCases
	s.noticedCases = is
	if !write {
		return
	}
	kinds := slices.AppendSeq(slices.Collect(maps.Keys(was)), maps.Keys(is))
	slices.Sort(kinds)
	for _, kind := range slices.Compact(kinds) {
		if was[kind] != is[kind] {
			s.logChanged("case", kind, strconv.FormatInt(was[kind], 10), strconv.FormatInt(is[kind], 10), "open cases of this kind")
		}
	}
}
