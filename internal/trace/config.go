package trace

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// Config configures a Tracer.
type Config struct {
	Endpoint string            // the URL that spans are posted to; "" means no tracing
	Ratio    float64           // the part of all subjects that is sampled, 0 to 1
	Headers  map[string]string // of each request; they may hold a secret
	Timeout  time.Duration     // of each request; 0 means 10 s
	Plain    bool              // without gzip
	Roots    *x509.CertPool    // issuers of the collector's certificate; nil means the system's
	Resource []Attribute       // what describes this process
	Dropped  func(spans int)   // counts spans that were lost; nil means that nobody does
	Log      *slog.Logger      // nil means silence
}

func (c *Config) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return defaultTimeout
}

// DefaultRatio is the ratio of --trace-ratio.
const DefaultRatio = 0.01

// The limits of what the environment may set.
const (
	maxPairs       = 64 // headers, or attributes of the resource
	maxTimeout     = time.Minute
	maxCertificate = 1 << 20 // bytes
)

// tracesPath follows the address of a collector.
const tracesPath = "/v1/traces"

// FromEnvironment returns the configuration of the variables that OpenTelemetry defines.
// An endpoint on the command line, as that of OTEL_EXPORTER_OTLP_ENDPOINT, takes
// precedence.
func FromEnvironment(endpoint string, ratio float64, getenv func(string) string) (Config, error) {
	c := Config{Ratio: ratio}
	if !(ratio >= 0 && ratio <= 1) {
		return c, fmt.Errorf("--trace-ratio %v is not a number from 0 to 1", ratio)
	}
	either := func(name string) (value, from string) {
		for _, from := range []string{"OTEL_EXPORTER_OTLP_TRACES_" + name, "OTEL_EXPORTER_OTLP_" + name} {
			if value := strings.TrimSpace(getenv(from)); value != "" {
				return value, from
			}
		}
		return "", ""
	}
	from := "--otlp-endpoint"
	if endpoint == "" {
		if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || strings.EqualFold(getenv("OTEL_TRACES_EXPORTER"), "none") {
			return c, nil
		}
		endpoint, from = either("ENDPOINT")
	}
	if endpoint == "" {
		return c, nil
	}
	var err error
	if c.Endpoint, err = tracesURL(endpoint, from == "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); err != nil {
		return c, fmt.Errorf("%s: %w", from, err)
	}
	for _, set := range []struct {
		name string
		set  func(value string) error
	}{{"PROTOCOL", checkProtocol}, {"COMPRESSION", c.setCompression}, {"TIMEOUT", c.setTimeout}, {"CERTIFICATE", c.readRoots}, {"HEADERS", c.setHeaders}} {
		if value, from := either(set.name); value != "" {
			if err := set.set(value); err != nil {
				return c, fmt.Errorf("%s: %w", from, err)
			}
		}
	}
	return c, c.setResource(getenv("OTEL_SERVICE_NAME"), getenv("OTEL_RESOURCE_ATTRIBUTES"))
}

// tracesURL returns the URL that spans are posted to.
func tracesURL(endpoint string, whole bool) (string, error) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("the address of a collector must look like http://127.0.0.1:4318")
	case u.User != nil:
		return "", fmt.Errorf("the address of a collector must not hold a password; put it into OTEL_EXPORTER_OTLP_HEADERS")
	}
	if !whole && !strings.HasSuffix(u.Path, tracesPath) {
		u.Path = strings.TrimRight(u.Path, "/") + tracesPath
	}
	return u.String(), nil
}

func checkProtocol(value string) error {
	if value != "http/protobuf" {
		return fmt.Errorf("the protocol %q is not supported; it is http/protobuf", value)
	}
	return nil
}

func (c *Config) setCompression(value string) error {
	switch value {
	case "gzip":
	case "none":
		c.Plain = true
	default:
		return fmt.Errorf("the compression %q is not gzip or none", value)
	}
	return nil
}

func (c *Config) setTimeout(value string) error {
	ms, err := strconv.ParseInt(value, 10, 64)
	if err != nil || ms <= 0 || ms > maxTimeout.Milliseconds() {
		return fmt.Errorf("%q is not a number of milliseconds up to %d", value, maxTimeout.Milliseconds())
	}
	c.Timeout = time.Duration(ms) * time.Millisecond
	return nil
}

func (c *Config) readRoots(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("read the issuers of the collector's certificate: %w", err)
	}
	if info.Size() > maxCertificate {
		return fmt.Errorf("%s is larger than %d bytes", path, maxCertificate)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the issuers of the collector's certificate: %w", err)
	}
	c.Roots = x509.NewCertPool()
	if !c.Roots.AppendCertsFromPEM(text) {
		return fmt.Errorf("%s holds no certificate in PEM", path)
	}
	return nil
}

// setHeaders sets the headers. Its errors do not repeat them, because they may be secret.
func (c *Config) setHeaders(text string) error {
	c.Headers = map[string]string{}
	all, err := pairs(text)
	for _, p := range all {
		if strings.ContainsFunc(p.Key, notInName) || strings.ContainsFunc(p.Text, notInValue) {
			return fmt.Errorf("a header has characters that are not allowed")
		}
		c.Headers[p.Key] = p.Text
	}
	return err
}

func notInName(r rune) bool {
	return !('a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
}

func notInValue(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// setResource sets what describes this process; service.name is always there.
func (c *Config) setResource(service, text string) error {
	all, err := pairs(text)
	if err != nil {
		return fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	name := "till"
	for _, a := range all {
		if a.Key == "service.name" {
			name = a.Text
			continue
		}
		c.Resource = append(c.Resource, a)
	}
	if service != "" {
		name = service
	}
	c.Resource = append(c.Resource, Attribute{Key: "service.name", Text: name})
	return nil
}

// pairs reads key=value,key=value, with values in percent encoding.
func pairs(text string) (out []Attribute, err error) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		key, value, found := strings.Cut(part, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !found || key == "" || err != nil {
			return nil, fmt.Errorf("it must look like key=value,key=value")
		}
		if len(out) == maxPairs {
			return nil, fmt.Errorf("it has more than %d parts", maxPairs)
		}
		out = append(out, Attribute{Key: key, Text: value})
	}
	return out, nil
}
