package certificates

import (
	"fmt"
	"time"
)

// MinLeft is how much of its life a certificate should have: if less than that and less than
// a third is left, its renewal has failed for days. The alert TillCertificateEnds says
// the same.
const MinLeft = 7 * 24 * time.Hour

// State is how well a certificate is.
type State int

// The states.
const (
	Good State = iota
	Ending
	Bad // none yet, ended, or not valid yet
)

// Judge says how well a certificate is. One without an end is none.
func Judge(begins, ends, now time.Time) (State, string) {
	left, at := ends.Sub(now), ends.UTC().Format(time.RFC3339)
	switch {
	case ends.IsZero():
		return Bad, "the server has none yet, and refuses every connection; look for \"certificate not obtained\" in its log"
	case left <= 0:
		return Bad, fmt.Sprintf("it ended at %s: clients refuse to connect; renew it", at)
	case now.Before(begins):
		return Bad, fmt.Sprintf("it is valid from %s on, and not yet; look at the clock", begins.UTC().Format(time.RFC3339))
	case left < MinLeft && left < ends.Sub(begins)/3:
		return Ending, fmt.Sprintf("it ends at %s, in %s, and nobody has renewed it", at, inDays(left))
	}
	return Good, fmt.Sprintf("it ends at %s, in %s", at, inDays(left))
}

func inDays(left time.Duration) string {
	if days := int64(left / (24 * time.Hour)); days != 1 {
		return fmt.Sprintf("%d days", days)
	}
	return "1 day"
}
