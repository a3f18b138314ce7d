package server

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"till/internal/system"
	"till/store"
)

// Exposure is one part of a setup that others can read or reach.
type Exposure struct {
	Name   string // one of those below
	Detail string // what is open, and what to do
}

// What Exposed checks.
const (
	ExposedFiles    = "private files"
	ExposedDatabase = "database link"
	ExposedAPI      = "API link"
	ExposedAdmin    = "admin address"
)

// Exposed returns what a setup exposes: files that other users of this machine can read,
// a database or an API that is reached over a network in plain text, and an admin address
// that other machines reach without a token for them. It rejects
// nothing: a group may be meant to read backups, and a network may be private or encrypted
// by other means. It skips what is "" in c, or does not exist.
func Exposed(c Config) (out []Exposure) {
	found := func(name, detail string, args ...any) {
		out = append(out, Exposure{name, fmt.Sprintf(detail, args...)})
	}
	if open := system.ReadableByOthers(c.privateFiles()...); len(open) > 0 {
		found(ExposedFiles, "other users of this machine can read %[1]s; run: chmod 600 %[1]s", strings.Join(open, " "))
	}
	for _, database := range []string{c.Database, c.SandboxPath} {
		if hosts := store.PlainHosts(database); len(hosts) > 0 {
			found(ExposedDatabase, "what is said to %s may go unencrypted over the network; put sslmode=verify-full into the URL", strings.Join(hosts, ", "))
			break // the sandbox's book is usually in the same database
		}
	}
	if c.plainHTTP() {
		found(ExposedAPI, "API keys are sent in plain HTTP to an address that other machines reach; serve TLS with --tls-cert or --acme-host, or let a proxy with TLS stand in front and name it with --base-url https://…/v1")
	}
	if c.AdminListen != "" && c.AdminTokenFile == "" && !system.IsLoopback(c.AdminListen) {
		found(ExposedAdmin, "other machines reach %s and get health only, neither metrics nor the log; listen on 127.0.0.1, or give Prometheus a token with --admin-token-file", c.AdminListen)
	}
	return out
}

// privateFiles are the installation's files that only its owner should read.
func (c *Config) privateFiles() []string {
	files := []string{c.SecretFile, c.AdminTokenFile, c.DemoFile, c.LiveDemoFile}
	for _, database := range []string{c.Database, c.SandboxPath} {
		if database != "" && !store.IsPostgres(database) {
			files = append(files, database, database+"-wal", database+"-shm")
		}
	}
	return files
}

// plainHTTP reports whether clients on other machines send their keys unencrypted. Behind a
// proxy with TLS, which the base URL shows, they do not, although the proxy may be on
// another machine.
func (c *Config) plainHTTP() bool {
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Scheme == "https" || c.usesTLS() || c.Role == RoleWorker {
		return false
	}
	return c.Listen != "" && !system.IsLoopback(c.Listen) || u.Host != "" && !system.IsLoopback(u.Hostname())
}

// warnExposed logs what the setup exposes.
func (s *Server) warnExposed(context.Context) error {
	for _, e := range Exposed(s.c) {
		s.log.Warn("setup exposed", "what", e.Name, "detail", e.Detail)
	}
	return nil
}
