// Package config reads the file that says which operators there are and which
// payments go to which of them: connections, routes, limits.
//
// It refuses what is wrong all at once, with the line where it stands, and
// before anything has begun: an unknown key is a mistake, not a remark. A
// credential is never in the file: KEY_env names an environment variable, or
// KEY_file a file, that holds it, and no message shows one.
//
// It knows no operator: what each can be told is the Config of its adapter,
// which whoever reads the file hands in (Kinds). Start reading at config.go.
package config
