package config

// Backup is the part of a file about backups.
type Backup struct {
	To         string   `toml:"to"`         // the place: a folder or s3://BUCKET/PREFIX
	Recipients []string `toml:"recipients"` // age's public keys
	Keep       string   `toml:"keep"`       // "24h,7d,5w,12m"
}

// maxRecipients is how many public keys a backup is encrypted for.
const maxRecipients = 20

// LoadBackup reads the part about backups only: it needs no credentials of
// operators.
func LoadBackup(path string) (Backup, error) {
	f, err := load(path, Options{}, (*reader).readBackup)
	if err != nil {
		return Backup{}, err
	}
	return f.Backup, nil
}

func (r *reader) readBackup(text []byte) {
	tree, ok := r.tree(text)
	if !ok {
		return
	}
	for name := range tree {
		if name != "backup" {
			delete(tree, name)
		}
	}
	var top struct {
		Backup Backup `toml:"backup"`
	}
	r.decode(tree, "", &top)
	r.backup(top.Backup)
}

func (r *reader) backup(b Backup) {
	if len(b.Recipients) > maxRecipients {
		r.problem(r.lines.line("backup.recipients"), "there are more than %d recipients", maxRecipients)
	}
	r.file.Backup = b
}
