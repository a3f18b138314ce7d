package access

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"till"
	"till/console/look"
	"till/console/shell"
	"till/people"
	"till/store"
)

// settingsPage is how a merchant is shown to people, and what was agreed with the
// installation's operator.
type settingsPage struct {
	*shell.Frame
	Done, Refused string
	Profile       *till.Profile
	Edit          bool
	Wrong         map[string]string
	Proof         *shell.ProofForm
	Facts         []shell.Fact
	Methods       []methodLine
	PayName       *payName
	Zones         []string
	Countries     []string
}

// methodLine is a method in a market, with its limits and fees.
type methodLine struct {
	Name, Limits    string
	Payment, Payout string // fees, in words
}

// settings is GET /c/{client}/settings.
func (v *visit) settings() error {
	p, err := v.settingsPage(v.Profile)
	if err != nil {
		return err
	}
	return v.Page("settings", p)
}

func (v *visit) settingsPage(profile *till.Profile) (*settingsPage, error) {
	t := v.Words.T
	p := &settingsPage{Frame: v.Frame(t("menu.settings"), "menu.settings"), Profile: profile, Edit: v.May(people.PolicySet), Zones: commonZones}
	p.Frame.Modules = []string{"passkey.js"}
	_, p.Refused = v.Outcome()
	var fees []till.Fee
	var methods []string
	err := v.View(func(ctx context.Context, tx *store.Tx) (err error) {
		if methods, err = tx.ClientMethods(ctx, v.Client.ID); err != nil {
			return err
		}
		fees, err = tx.ClientFees(ctx, v.Client.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.Facts = []shell.Fact{{Name: t("settings.name"), Value: v.Client.Name}, {Name: t("settings.id"), Value: v.Client.ID.String()}, {Name: t("settings.mode"), Value: t("settings.mode_" + string(v.Client.Mode))},
		{Name: t("settings.since"), Value: v.Clock.DateTime(v.Client.CreatedAt)}}
	if v.Client.Suspended {
		p.Facts = append(p.Facts, shell.Fact{Name: t("list.state"), Value: t("settings.suspended"), Strong: true})
	}
	for _, m := range till.Methods() {
		for _, k := range m.Markets {
			if v.Client.Mode == till.Test && k.Sandbox || v.Client.Mode == till.Live && slices.Contains(methods, m.Code) {
				p.Methods = append(p.Methods, v.methodLine(m, k, fees))
			}
			if _, ok := till.CountryOf(k.Country); ok && !slices.Contains(p.Countries, k.Country) {
				p.Countries = append(p.Countries, k.Country)
			}
		}
	}
	slices.Sort(p.Countries)
	if p.PayName, err = v.readPayName(); err != nil {
		return nil, err
	}
	if p.Edit {
		p.Proof, err = v.ProofForm()
	}
	return p, err
}

// commonZones are offered first; every IANA name is taken.
var commonZones = []string{"Africa/Abidjan", "Africa/Accra", "Africa/Addis_Ababa", "Africa/Brazzaville", "Africa/Dakar", "Africa/Dar_es_Salaam", "Africa/Douala", "Africa/Harare", "Africa/Johannesburg",
	"Africa/Kampala", "Africa/Kigali", "Africa/Kinshasa", "Africa/Lagos", "Africa/Libreville", "Africa/Luanda", "Africa/Lusaka", "Africa/Maputo", "Africa/Nairobi", "Africa/Porto-Novo", "UTC"}

func (v *visit) methodLine(m *till.Method, k till.Market, fees []till.Fee) methodLine {
	lang := v.Words.Lang()
	money := func(minor int64) string { return look.Money(lang, till.Money{Minor: minor, Currency: k.Currency}) }
	line := methodLine{Name: shell.MethodName(m.Code, k.Country), Limits: v.Words.T("settings.limits", "min", money(k.Min), "max", money(k.Max))}
	fee := func(kind till.FeeKind) string {
		for _, f := range fees {
			if f.Kind != kind || f.Method != m.Code || f.Currency != k.Currency {
				continue
			}
			var parts []string
			if f.BasisPoints > 0 {
				parts = append(parts, percent(lang, f.BasisPoints))
			}
			if f.Flat > 0 || f.BasisPoints == 0 {
				parts = append(parts, money(f.Flat))
			}
			return strings.Join(parts, " + ")
		}
		return v.Words.T("settings.no_fee")
	}
	line.Payment, line.Payout = fee(till.PaymentFee), fee(till.PayoutFee)
	return line
}

// percent returns hundredths of a percent as people write them: 1.5 %.
func percent(lang string, points int64) string {
	text := strconv.FormatInt(points/100, 10)
	if rest := points % 100; rest != 0 {
		digits := strconv.FormatInt(100+rest, 10)[1:]
		mark := "."
		if lang == look.French {
			mark = ","
		}
		text += mark + strings.TrimRight(digits, "0")
	}
	return text + "\u00a0%"
}

// postSettings is POST /c/{client}/settings.
func (v *visit) postSettings() error {
	field := func(name string) string { return strings.TrimSpace(v.R.PostFormValue(name)) }
	lines := func(name string) string { return strings.ReplaceAll(field(name), "\r\n", "\n") }
	profile := &till.Profile{ClientID: v.Client.ID, Name: field("name"), Zone: field("zone"), Country: field("country"), Language: field("language"), ReceiptHead: lines("receipt_head"), ReceiptFoot: lines("receipt_foot")}
	err := v.Console.Accounts.SetProfile(v.R.Context(), profile, v.Session.Actor())
	var e *till.Error
	if errors.As(err, &e) && e.Code == till.CodeValidationFailed {
		p, readErr := v.settingsPage(profile)
		if readErr != nil {
			return readErr
		}
		p.Wrong = map[string]string{}
		for _, f := range e.Fields {
			name := strings.TrimPrefix(f.Pointer, "/")
			p.Wrong[name] = v.Words.T("settings.wrong_" + name)
		}
		v.Render(http.StatusUnprocessableEntity, "settings", p)
		return nil
	}
	return v.After(v.ClientPath("/settings"), "profile", err)
}
