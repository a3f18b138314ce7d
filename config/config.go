package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"till"
)

// The limits of a file.
const (
	maxFile        = 1 << 20
	maxConnections = 100
	maxRoutes      = 1000
	maxNetworks    = 100
	maxCalls       = 10_000
	maxRate        = 100_000
)

// File is a valid configuration.
type File struct {
	Path string
	// Digest begins the SHA-256 of the text, in hexadecimal: two starts with the same
	// digest had the same file. The file holds no credentials.
	Digest string
	// Methods are the methods that the file adds or changes, for till.MergeMethods.
	Methods     []*till.Method
	Connections []*Connection
	Routes      []*Route
	// TrustedProxies are the networks whose X-Forwarded-For is trusted.
	TrustedProxies []netip.Prefix
	// HouseNetworks are where the installation's staff may sign in to the console
	// from; none: anywhere.
	HouseNetworks []netip.Prefix
	// Calls is how many calls to operators an instance makes at once; 0 means the default.
	Calls int
	// LogLevel is debug, info, warn or error; "" means that of the command line.
	LogLevel string
	// Refunds says how old payments may be given back, and by which way.
	Refunds Refunds
	// Backup is read by 'till backup' and 'till doctor', not by the service.
	Backup Backup
}

// Connection is one account at an operator.
type Connection struct {
	Name     string
	Operator string
	Line     int
	// Settings is the Config of the operator's adapter, a pointer, with its credentials
	// filled in.
	Settings any
	// CallbackNetworks are the networks that its callbacks may come from; none means
	// anywhere.
	CallbackNetworks []netip.Prefix
	Limits           Limits
	// Refunds is by which way its payments are given back: one of RefundWays, or "" for the
	// operator's default.
	Refunds string
	// Statement says how the operator's statements are read; nil if it is not configured.
	// It is kept as written.
	Statement map[string]any

	sources []credentialSource // of what Reread reads
}

// Limits limits the calls to a connection. A zero field means what its adapter says.
type Limits struct {
	Calls           int `toml:"calls"` // under way at once, of one instance
	SubmitPerSecond int `toml:"submit_per_second"`
	SubmitBurst     int `toml:"submit_burst"`
	CheckPerSecond  int `toml:"check_per_second"`
	CheckBurst      int `toml:"check_burst"`
}

// Route sends payments and payouts of a method to connections, the preferred one first.
type Route struct {
	Line           int
	Method         string
	Markets        []till.Market
	NamesCountries bool // it names its countries
	Kinds          []till.SubjectKind
	Clients        []till.ID // none: every live client without a route of its own
	Connections    []string
}

// Options are the options for reading a file.
type Options struct {
	// Operators are the operators that a connection can name: each returns a pointer to a
	// new Config of its adapter.
	Operators map[string]func() any
	// Env returns an environment variable, ReadFile reads a credential's file, and Run runs
	// a command that prints a credential; nil means the machine's.
	Env      func(name string) (string, bool)
	ReadFile func(path string) ([]byte, error)
	Run      func(command []string) ([]byte, error)

	commandEnvironment []string // names of variables that commands get
}

// Load reads a file.
func Load(path string, o Options) (*File, error) { return load(path, o, (*reader).read) }

func load(path string, o Options, read func(r *reader, text []byte)) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return parse(path, text, o, read)
}

// Parse reads a configuration. The error is an *Error with all problems.
func Parse(path string, text []byte, o Options) (*File, error) {
	return parse(path, text, o, (*reader).read)
}

func parse(path string, text []byte, o Options, read func(r *reader, text []byte)) (*File, error) {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	if o.ReadFile == nil {
		o.ReadFile = os.ReadFile
	}
	r := &reader{o: o, dir: filepath.Dir(path), file: &File{Path: path, Digest: digest(text)}}
	if len(text) > maxFile {
		r.problem(1, "the file is larger than %d bytes", maxFile)
	} else {
		read(r, text)
	}
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b Problem) int { return a.Line - b.Line })
		return nil, &Error{File: path, Problems: r.problems}
	}
	return r.file, nil
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// Problem is one mistake in a file.
type Problem struct {
	Line int
	Text string
}

// Error is all mistakes in a file.
type Error struct {
	File     string
	Problems []Problem
}

// Error implements error: a line for each problem.
func (e *Error) Error() string {
	var lines []string
	for _, p := range e.Problems {
		lines = append(lines, fmt.Sprintf("%s:%d: %s", e.File, p.Line, p.Text))
	}
	return strings.Join(lines, "\n")
}

// Problem adds a mistake that was found later, when the connections were opened.
func (f *File) Problem(err error, line int, text string, args ...any) error {
	e, ok := err.(*Error)
	if !ok {
		e = &Error{File: f.Path}
	}
	e.Problems = append(e.Problems, Problem{line, fmt.Sprintf(text, args...)})
	return e
}

// Connection returns the connection of a name, nil if there is none.
func (f *File) Connection(name string) *Connection {
	for _, c := range f.Connections {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// validName is the form of a connection's name, which is part of addresses and of lanes'
// names.
var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)
