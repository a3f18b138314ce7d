package operators

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	"till"
	"till/config"
	"till/engine"
	"till/internal/seal"
	"till/provider"
	"till/provider/airtel"
	"till/provider/mpesa"
	"till/provider/mtnmomo"
	"till/provider/pawapay"
	"till/tokens"
)

// Adapters are the operators that a configuration can name.
type Adapters map[string]Adapter

// Builtin are the operators that come with the program, one line each.
var Builtin = Adapters{
	"mtnmomo": AdapterOf(mtnmomo.New),
	"airtel":  AdapterOf(airtel.New),
	"pawapay": AdapterOf(pawapay.New),
	"mpesa":   AdapterOf(mpesa.New),
}

// Adapter opens connections to one operator.
type Adapter struct {
	settings func() any // a pointer to a new Config
	open     func(settings any, d provider.Deps) (operatorAccount, error)
}

// operatorAccount is an account at an operator, as an adapter opens it.
type operatorAccount interface {
	Payments() provider.Provider // nil: it does not collect
	Payouts() provider.Provider  // nil: it does not pay out
}

// AdapterOf returns the adapter for a constructor.
func AdapterOf[C any, A operatorAccount](open func(c C, d provider.Deps) (A, error)) Adapter {
	return Adapter{
		settings: func() any { return new(C) },
		open: func(settings any, d provider.Deps) (operatorAccount, error) {
			a, err := open(*settings.(*C), d)
			if err != nil {
				return nil, err
			}
			return a, nil
		},
	}
}

// LoadConfig reads the file of connections and routes; nil means Builtin.
func LoadConfig(path string, a Adapters) (*config.File, error) {
	return config.Load(path, a.Options())
}

// Options returns the options for reading a configuration.
func (a Adapters) Options() config.Options {
	if a == nil {
		a = Builtin
	}
	o := config.Options{Operators: map[string]func() any{}}
	for name, adapter := range a {
		o.Operators[name] = adapter.settings
	}
	return o
}

// Operators are the opened connections of a configuration.
type Operators struct {
	File     *config.File
	Payments map[string]provider.Provider
	Payouts  map[string]provider.Provider
	Router   *config.Router
}

// Open opens the connections of a file, which may be nil, and adds its methods to
// the table of methods. It makes no call. It reports all mistakes at once.
func Open(f *config.File, a Adapters, deps func(c *config.Connection) provider.Deps) (*Operators, error) {
	o := &Operators{File: f, Payments: map[string]provider.Provider{}, Payouts: map[string]provider.Provider{}}
	if f == nil {
		o.File = &config.File{}
		return o, nil
	}
	if a == nil {
		a = Builtin
	}
	var wrong error
	for _, c := range f.Connections {
		opened, err := a[c.Operator].open(c.Settings, deps(c))
		if err != nil {
			wrong = f.Problem(wrong, c.Line, "the connection %s: %v", c.Name, err)
			continue
		}
		if p := opened.Payments(); p != nil {
			o.Payments[c.Name] = p
		}
		if p := opened.Payouts(); p != nil {
			o.Payouts[c.Name] = p
		}
	}
	if wrong != nil {
		return nil, wrong
	}
	o.Router = f.Router(func(name string, kind till.SubjectKind) bool { return o.provider(name, kind) != nil })
	for _, r := range f.Routes {
		for _, name := range r.Connections {
			if !slices.ContainsFunc(r.Kinds, func(k till.SubjectKind) bool {
				return slices.ContainsFunc(r.Markets, func(m till.Market) bool { return o.Serves(name, k, r.Method, m) })
			}) {
				wrong = f.Problem(wrong, r.Line, "the connection %s does not serve what this route is for", name)
			}
		}
	}
	if wrong != nil {
		return nil, wrong
	}
	till.ExtendMethods(f.Methods)
	return o, nil
}

// provider returns a connection's provider for a kind, nil if it has none.
func (o *Operators) provider(connection string, kind till.SubjectKind) provider.Provider {
	if kind == till.SubjectPayout {
		return o.Payouts[connection]
	}
	return o.Payments[connection]
}

// Serves reports whether a connection serves payments or payouts of a method in a market.
func (o *Operators) Serves(connection string, kind till.SubjectKind, method string, k till.Market) bool {
	return provider.Serves(o.provider(connection, kind), method, k.Country, k.Currency)
}

// HasRoute reports whether a client's payments or payouts of a method in a market have a
// route.
func (o *Operators) HasRoute(client till.ID, kind till.SubjectKind, method string, k till.Market) bool {
	return slices.ContainsFunc(o.Router.Find(client, kind, method, k.Country, k.Currency), func(name string) bool {
		return o.Serves(name, kind, method, k)
	})
}

// Routes returns where payments or payouts go: to the sandbox for a test client; the configured
// way for a live one, and never to the sandbox.
func (o *Operators) Routes(kind till.SubjectKind) engine.Routes {
	return func(client *till.Client, method, country, currency string) []string {
		if client.Mode == till.Test {
			return []string{till.SandboxConnection}
		}
		return o.Router.Find(client.ID, kind, method, country, currency)
	}
}

// Refunds says where refunds go of payments on the connections that collect, given those that
// pay out.
func (o *Operators) Refunds(payments, payouts map[string]provider.Provider) engine.Refunds {
	f, by := o.File.Refunds, map[string]engine.RefundBy{}
	for _, c := range o.File.Connections {
		by[c.Name] = engine.RefundBy(c.Refunds)
	}
	out := engine.Refunds{Origins: engine.OriginsOf(payments, payouts, by), Retired: map[string]bool{}, MaxAge: f.MaxAge()}
	for _, name := range f.Retired {
		out.Retired[name] = true
	}
	return out
}

// Limits returns the limits of connections in the configuration.
func (o *Operators) Limits() map[string]engine.Limits {
	out := map[string]engine.Limits{}
	for _, c := range o.File.Connections {
		out[c.Name] = engine.Limits{
			Calls:  c.Limits.Calls,
			Submit: provider.Rate{PerSecond: c.Limits.SubmitPerSecond, Burst: c.Limits.SubmitBurst},
			Check:  provider.Rate{PerSecond: c.Limits.CheckPerSecond, Burst: c.Limits.CheckBurst},
		}
	}
	return out
}

// Called reports whether an operator calls one address for all payments or payouts of a
// connection.
func (o *Operators) Called(connection string) bool {
	_, payments := o.Payments[connection].(provider.CallbackReader)
	_, payouts := o.Payouts[connection].(provider.CallbackReader)
	return payments || payouts
}

// CallbackURL returns a connection's one callback address. Nobody can guess it. It changes
// with the generation of the installation's secret.
func CallbackURL(baseURL, connection string, ring *seal.Ring) string {
	return baseURL + "/callbacks/" + connection + "/" + CallbackSecrets(ring, connection)[0]
}

// CallbackSecrets returns what a connection's callback address may end with, that of the
// generation in use first. Operators call the address that a person gave them, so each
// generation that is not retired has one.
func CallbackSecrets(ring *seal.Ring, connection string) (out []string) {
	for _, key := range ring.Live() {
		h := hmac.New(sha256.New, key)
		h.Write([]byte("connection callback\x00" + connection))
		out = append(out, base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:18]))
	}
	return out
}

// DepsOf returns the dependencies of each adapter.
func DepsOf(k *tokens.Cache, baseURL string, ring *seal.Ring, log *slog.Logger) func(c *config.Connection) provider.Deps {
	return func(c *config.Connection) provider.Deps {
		d := provider.Deps{Connection: c.Name, Tokens: k.For(c.Name, settingsDigest(ring.Root(), c)), Conns: c.Limits.Calls, Log: log}
		if baseURL != "" {
			d.CallbackURL = CallbackURL(baseURL, c.Name, ring)
		}
		return d
	}
}

// settingsDigest differs if the settings of a connection do, and reveals nothing about
// them.
func settingsDigest(secret []byte, c *config.Connection) string {
	text, err := json.Marshal(c.Settings)
	if err != nil {
		text = fmt.Appendf(nil, "%+v", c.Settings)
	}
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("operator settings\x00" + c.Operator + "\x00"))
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil)[:8])
}
