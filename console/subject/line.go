package subject

import (
	"till"
	"till/console/shell"
	"till/store"
)

// Line is one row of a list of payments or payouts, ready for people.
type Line struct {
	ID        string
	Path      string
	Day       string // where a new day begins
	At        till.Time
	Time      string
	State     shell.Chip
	Why       string
	Amount    till.Money
	Phone     string // masked
	Method    string
	Reference string
	Receipt   string
	Final     bool // nothing more is decided

	Whole    string // whole
	Client   till.ID
	Merchant string // its name, on pages over all merchants
	Test     bool   // that it is a test merchant, there
}

// Tail returns the end of the id, which names a line that has no reference.
func (l *Line) Tail() string { return l.ID[len(l.ID)-8:] }

func line(v *shell.Visit, client, id till.ID, at till.Time, amount till.Money, phone, method, country, reference, receipt string) *Line {
	return &Line{Client: client, ID: id.String(), At: at, Time: v.Clock.Time(at), Amount: amount, Whole: phone, Phone: MaskPhone(phone), Method: shell.MethodName(method, country),
		Reference: reference, Receipt: receipt}
}

func PaymentLines(v *shell.Visit, rows []*store.PaymentRow) []*Line {
	out := make([]*Line, len(rows))
	for i, p := range rows {
		l := line(v, p.ClientID, p.ID, p.CreatedAt, p.Amount, p.Phone, p.Method, p.Country, p.Reference, p.ProviderReference)
		l.Path = shell.PathOf(p.ClientID, "/payments/"+l.ID)
		l.State, l.Why = PaymentChip(v, p)
		l.Final = p.Status.Final()
		out[i] = l
	}
	SetDays(v, out)
	return out
}

func PayoutLines(v *shell.Visit, rows []*store.PayoutRow) []*Line {
	out := make([]*Line, len(rows))
	for i, p := range rows {
		l := line(v, p.ClientID, p.ID, p.CreatedAt, p.Amount, p.Phone, p.Method, p.Country, p.Reference, p.ProviderReference)
		l.Path = shell.PathOf(p.ClientID, "/"+listOf(p.Noun())+"/"+l.ID)
		l.State, l.Why = PayoutChip(v, p)
		out[i] = l
	}
	SetDays(v, out)
	return out
}

// SetDays names the day of each line that begins one.
func SetDays(v *shell.Visit, lines []*Line) {
	for i, l := range lines {
		if i == 0 || !v.Clock.SameDay(l.At, lines[i-1].At) {
			l.Day = v.Clock.Day(l.At, v.Now)
		}
	}
}
