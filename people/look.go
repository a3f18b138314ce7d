package people

import (
	"time"

	"till"
)

// look is who viewed whom on which day of UTC. What was written once is
// remembered, so that not each page writes.
type look struct{ person, client till.ID }

// maxLooks bounds what is remembered; beyond it, all is forgotten and the
// database says again that the row is there.
const maxLooks = 10_000

func dayOf(t till.Time) int64 { return int64(t) / (24 * time.Hour).Microseconds() }

func (p *People) looked(person, client till.ID) bool {
	p.looksMu.Lock()
	defer p.looksMu.Unlock()
	day, found := p.looks[look{person, client}]
	return found && day == dayOf(p.now())
}

func (p *People) rememberLook(person, client till.ID) {
	p.looksMu.Lock()
	defer p.looksMu.Unlock()
	if len(p.looks) >= maxLooks {
		p.looks = nil
	}
	if p.looks == nil {
		p.looks = map[look]int64{}
	}
	p.looks[look{person, client}] = dayOf(p.now())
}
