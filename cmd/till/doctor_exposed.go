package main

import (
	"till/internal/system"
	"till/server"
	"till/store"
)

// examineExposure reports what others can read, as a start of the server does.
func (d *doctor) examineExposure(database, secretFile, listen, baseURL string) {
	c := server.Config{
		Database: database, SandboxPath: server.SandboxPath(database), SecretFile: secretFile, Listen: listen, BaseURL: baseURL,
	}
	if secretFile == "" && !store.IsPostgres(database) {
		c.SecretFile = server.SecretFile(database)
	}
	found := map[string]string{}
	for _, e := range server.Exposed(c) {
		found[e.Name] = e.Detail
	}
	judge := func(asked bool, name, fine string) {
		if asked {
			d.addIf(name, found[name] != "", isRisky, fine, found[name])
		}
	}
	judge(system.CanCheckReaders && c.SecretFile != "", server.ExposedFiles, "no other user of this machine can read them")
	judge(store.IsPostgres(database), server.ExposedDatabase, "it is encrypted, or does not leave this machine")
	judge(listen != "" || baseURL != "", server.ExposedAPI, "it is encrypted, or does not leave this machine")
}
