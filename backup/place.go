package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"till"
)

// Place keeps backups.
type Place interface {
	// Put keeps what write writes under a name, all of it or nothing.
	Put(ctx context.Context, name string, write func(w io.Writer) error) (bytes int64, err error)

	// List returns the names of the backups, in any order.
	List(ctx context.Context) ([]string, error)

	// Open reads a backup.
	Open(ctx context.Context, name string) (io.ReadCloser, error)

	// Remove deletes a backup.
	Remove(ctx context.Context, name string) error

	// String names the place, for people.
	String() string
}

// errPlace is of what a place could not do.
var errPlace = errors.New("the place of the backups")

// maxListed is how many backups a place lists.
const maxListed = 100_000

// Name is the name of a backup, which says whose it is and of when.
type Name struct {
	Installation string
	Taken        till.Time // in whole milliseconds
	Encrypted    bool
}

const nameTime = "20060102T150405.000Z"

var nameForm = regexp.MustCompile(`^till-([0-9a-f]{12})-(\d{8}T\d{6}\.\d{3}Z)\.tar\.gz(\.age)?$`)

// String returns the name of the file.
func (n Name) String() string {
	s := fmt.Sprintf("till-%s-%s.tar.gz", n.Installation, n.Taken.Std().Format(nameTime))
	if n.Encrypted {
		s += ".age"
	}
	return s
}

// ParseName reads a name, and reports false for a file that is no backup.
func ParseName(s string) (Name, bool) {
	m := nameForm.FindStringSubmatch(s)
	if m == nil {
		return Name{}, false
	}
	at, err := time.Parse(nameTime, m[2])
	return Name{m[1], till.TimeOf(at), m[3] != ""}, err == nil
}

// NameOf returns the name of the backup that a manifest describes.
func NameOf(m *Manifest, encrypted bool) Name {
	return Name{m.Installation, till.TimeOf(m.Taken().Std().Truncate(time.Millisecond)), encrypted}
}

// names returns the backups in a place, the newest first, without files that are
// none. An installation other than "" leaves only its own.
func names(ctx context.Context, p Place, installation string) ([]Name, error) {
	list, err := p.List(ctx)
	if err != nil {
		return nil, err
	}
	return sortNames(list, installation), nil
}

// sortNames is Names of what a place has listed.
func sortNames(list []string, installation string) (out []Name) {
	for _, s := range list {
		if n, ok := ParseName(s); ok && (installation == "" || n.Installation == installation) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b Name) int { return cmp.Compare(b.Taken, a.Taken) })
	return out
}

// SetMark puts a mark beside a backup. It may be there already.
func SetMark(ctx context.Context, p Place, name Name, m Mark, text string) error {
	list, err := p.List(ctx)
	if err != nil || slices.Contains(list, name.String()+string(m)) {
		return err
	}
	_, err = p.Put(ctx, name.String()+string(m), func(w io.Writer) error {
		_, err := io.WriteString(w, text+"\n")
		return err
	})
	return err
}

// Newest returns the newest backup in a place. Where there are backups of several
// installations, one has to be named: the newest of all may be another's.
func Newest(ctx context.Context, p Place, installation string) (Name, error) {
	names, err := names(ctx, p, installation)
	if err != nil {
		return Name{}, err
	}
	if len(names) == 0 {
		if installation != "" {
			return Name{}, fmt.Errorf("there is no backup of the installation %s in %s", installation, p)
		}
		return Name{}, fmt.Errorf("there is no backup in %s", p)
	}
	var others []string
	for _, n := range names {
		if !slices.Contains(others, n.Installation) {
			others = append(others, n.Installation)
		}
	}
	if len(others) > 1 {
		return Name{}, fmt.Errorf("%s has backups of several installations (%s): name one with --installation", p, strings.Join(others, ", "))
	}
	return names[0], nil
}

// OpenPlace returns the place that a text names: a folder or s3://BUCKET/PREFIX.
func OpenPlace(text string, env func(string) string) (Place, error) {
	switch {
	case text == "":
		return nil, errors.New("the place of the backups is missing")
	case strings.HasPrefix(text, "s3://"):
		return newBucket(text, env)
	case strings.Contains(text, "://"):
		return nil, fmt.Errorf("%s is neither a folder nor s3://BUCKET/PREFIX", text)
	}
	return folder(text), nil
}
