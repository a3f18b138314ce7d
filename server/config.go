package server

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"till/certificates"
	"till/config"
	"till/internal/logs"
	"till/internal/trace"
	"till/operators"
	"till/provider"
	"till/secret"
	"till/store"
	"till/webhook"
)

// Role says which part of the work an instance takes.
type Role string

// The roles.
const (
	RoleAll    Role = "all"    // serves requests and calls operators
	RoleAPI    Role = "api"    // serves requests only
	RoleWorker Role = "worker" // calls operators and serves no requests
)

func (r Role) serves() bool { return r != RoleWorker }
func (r Role) works() bool  { return r != RoleAPI }

// Config configures a Server. Only Database and Listen are required.
type Config struct {
	// Database is a SQLite file, whose folder is created if it does not exist, or a
	// postgres:// URL, which any number of instances may share.
	Database string
	Listen   string // where the API is served; port 0 takes a free one

	// LoopbackOnly rejects a Listen that other machines can reach.
	LoopbackOnly bool

	// TLSCert and TLSKey are the files of a certificate and its key; "" means none. ACME, if
	// it has hosts, obtains certificates instead. With either, the API and the console are
	// served by TLS only.
	TLSCert, TLSKey string
	ACME            certificates.ACMEConfig
	// HTTPListen is an address for plain HTTP that answers a certificate authority's
	// challenges and redirects browsers; "" means none.
	HTTPListen string

	// AdminListen is the address of the health checks; "" means none. AdminTokenFile has
	// the bearer token by which other machines get more than those; "" means that none do.
	AdminListen    string
	AdminTokenFile string

	// Drain is how long a stop goes on serving after readyz has begun to fail.
	Drain time.Duration

	// NoConsole leaves the console out. ConsoleListen is an address of its own
	// for it; "" means beside the API. ConsoleURL is where browsers open it,
	// "https://console.example.com"; "" means the origin of BaseURL.
	NoConsole     bool
	ConsoleListen string
	ConsoleURL    string

	// NoPages leaves out the pages that customers pay on. PayListen is an address of their own;
	// "" means beside the API. PayURL is where browsers open them, "https://pay.example.com";
	// "" means the origin of BaseURL. Without either there are none, but for a demo.
	NoPages   bool
	PayListen string
	PayURL    string

	// NoDocs leaves out the pages for developers at /docs/ and the SDKs at /sdk/. Problems
	// then have the type about:blank.
	NoDocs bool

	// BaseURL is the address at which clients reach the API; it ends in /v1. "" means the
	// address of Listen.
	BaseURL string

	Role      Role    // "" means RoleAll
	RateLimit float64 // requests per second of each client; 0 means no limit
	TestQuota int64   // bytes that each test client may store; 0 means no limit

	// ApprovalWindow is how long the sandbox's customers have; 0 means a
	// minute. It is at least MinApprovalWindow.
	ApprovalWindow time.Duration

	SecretFile  string // "" means till.secret beside the SQLite file; required for PostgreSQL
	SandboxPath string // "" means sandbox.db beside the SQLite file, or a schema of the same PostgreSQL

	// Journal is the folder of the journal of creates; "" means none. JournalSync writes it
	// before the commit. JournalKeep and JournalMax, in bytes, bound it; 0 means the defaults.
	Journal     string
	JournalSync bool
	JournalKeep time.Duration
	JournalMax  int64

	// NoNotify turns PostgreSQL's NOTIFY off, for a pooler that does not support it. Then
	// instances notice each other's work by polling.
	NoNotify bool

	// PlainSQL is for a distributed PostgreSQL such as Citus: it sends no SKIP
	// LOCKED, and statements about one client each.
	PlainSQL bool

	// PhonePatterns are further ranges of mobile numbers, as COUNTRY=PATTERN of the
	// national number.
	PhonePatterns []string

	// WebhookAllow are private or special networks that webhooks may be sent to, as
	// webhook.ParseAllowed reads them.
	WebhookAllow []string

	// WebhookProxy is the proxy for webhooks; "" means none, whatever the environment's
	// variables say.
	WebhookProxy string

	// Operators are the connections and routes of live clients; nil means none. Adapters
	// open them; nil means operators.Builtin.
	Operators *config.File
	Adapters  operators.Adapters

	// DemoFile, if not "", requests a demo client, whose key is stored there.
	DemoFile string
	// LiveDemoFile, if not "", also requests a live demo client. Use it only if every
	// operator is simulated.
	LiveDemoFile string

	// MaxBatch and Operator are for measurements and have no flag. MaxBatch is how many
	// creates share a commit; 0 means no limit. Operator, if not nil, replaces the sandbox
	// for test clients.
	MaxBatch int
	Operator provider.Provider

	// Lease is that of engine.Config. It is for tests, and has no flag.
	Lease time.Duration

	// NoMetrics counts nothing, for measurements; it has no flag.
	NoMetrics bool

	// Trace says where spans are sent; the zero value means nowhere.
	Trace trace.Config

	// LogRing is the writer below Log, whose last lines the admin address shows. Nil keeps
	// none.
	LogRing *logs.Ring
	// LogEnded is how many payments and payouts that ended as planned share one line of the
	// log; 0 means that each has one.
	LogEnded int

	// Version is the program's, for other instances and for people.
	Version string

	Log *slog.Logger // nil means silence
}

// MinApprovalWindow is the shortest window in which the sandbox's stories can happen.
const MinApprovalWindow = 3 * time.Second

// MaxDrain is the longest time of draining.
const MaxDrain = 5 * time.Minute

const defaultApprovalWindow = time.Minute

// setDefaults sets the defaults and rejects invalid values.
func (c *Config) setDefaults() error {
	if c.Database == "" {
		return fmt.Errorf("the path of the database is missing")
	}
	switch c.Role {
	case "":
		c.Role = RoleAll
	case RoleAll, RoleAPI, RoleWorker:
	default:
		return fmt.Errorf("the role %q does not exist; it is all, api or worker", c.Role)
	}
	if c.ApprovalWindow == 0 {
		c.ApprovalWindow = defaultApprovalWindow
	}
	if c.ApprovalWindow < MinApprovalWindow {
		return fmt.Errorf("an approval window of %s is too short; it is at least %s", c.ApprovalWindow, MinApprovalWindow)
	}
	if c.Drain < 0 || c.Drain > MaxDrain {
		return fmt.Errorf("draining for %s is not possible; it is at most %s", c.Drain, MaxDrain)
	}
	if err := c.checkTLS(); err != nil {
		return err
	}
	if c.AdminTokenFile != "" {
		if _, err := ReadAdminToken(c.AdminTokenFile); err != nil {
			return err
		}
	}
	if c.RateLimit < 0 {
		return fmt.Errorf("the rate limit must not be negative; 0 turns it off")
	}
	if c.TestQuota < 0 {
		return fmt.Errorf("the quota of test clients must not be negative; 0 turns it off")
	}
	if _, err := webhook.ParseAllowed(c.WebhookAllow); err != nil {
		return fmt.Errorf("networks that webhooks may be sent to: %w", err)
	}
	if _, err := webhook.ParseProxy(c.WebhookProxy); err != nil {
		return fmt.Errorf("the proxy of webhooks: %w", err)
	}
	if c.Journal == "" && c.JournalSync {
		return fmt.Errorf("a journal that is written before the answer needs a folder: name it with --journal")
	}
	if c.SecretFile == "" {
		if store.IsPostgres(c.Database) {
			return fmt.Errorf("with PostgreSQL, name the file of the installation's secret with --secret-file; every instance needs the same one")
		}
		c.SecretFile = secret.File(c.Database)
	}
	if c.SandboxPath == "" {
		c.SandboxPath = operators.SandboxPath(c.Database)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if err := checkOrigin(&c.PayURL, "--pay-url", "customers open the pages to pay on", "https://pay.example.com"); err != nil {
		return err
	}
	if err := checkOrigin(&c.ConsoleURL, "--console-url", "browsers open the console", "https://console.example.com"); err != nil {
		return err
	}
	return c.checkBaseURL()
}

// databaseName returns the database for logs and messages: a URL without its password.
func (c *Config) databaseName() string {
	if !store.IsPostgres(c.Database) {
		return c.Database
	}
	u, err := url.Parse(c.Database)
	if err != nil {
		return "postgres"
	}
	return "postgres://" + u.Host + u.Path
}

// checkOrigin refuses an address that is not where browsers open something, and takes off a slash
// at its end.
func checkOrigin(address *string, flag, what, example string) error {
	if *address == "" {
		return nil
	}
	u, err := url.Parse(*address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("%s must be where %s, without a path, as in %s", flag, what, example)
	}
	*address = strings.TrimRight(*address, "/")
	return nil
}

func (c *Config) checkBaseURL() error {
	if c.BaseURL == "" {
		return nil
	}
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return fmt.Errorf("the base URL must look like https://pay.example.com/v1")
	case !strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1"):
		return fmt.Errorf("the base URL must end in /v1")
	}
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	return nil
}
