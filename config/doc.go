// Package config reads the TOML file of connections, routes and limits: which
// operators there are, and which payments go to which of them.
//
// It reports all mistakes at once, each with its line, before anything is opened.
// An unknown key is a mistake. Credentials are never in the file: KEY_env names an
// environment variable and KEY_file a file, and no message shows a credential.
//
// It knows no operator. Each adapter's Config defines the keys of its table; the
// caller passes them in Options.Operators.
//
// Start reading at config.go.
package config
