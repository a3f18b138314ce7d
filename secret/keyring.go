package secret

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"till/internal/seal"
	"till/internal/system"
	"till/store"
	"till/store/admin"
	"till/upkeep"
)

// maxSecretFile is the size of the largest file of a secret, with all generations and some
// comments.
const maxSecretFile = 64 << 10

// ReadKeys reads the generations in the file of the installation's secret. The first line
// is the root and generation 1. Each further line is a generation's number and key. Empty
// lines and those that begin with # mean nothing. No error quotes the file.
func ReadKeys(path string) (map[int][]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the secret: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the secret: %w", err)
	}
	if len(text) > maxSecretFile {
		return nil, fmt.Errorf("%s does not hold a secret: it has more than %d bytes", path, maxSecretFile)
	}
	keys, err := parseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%s does not hold a secret: %w", path, err)
	}
	return keys, nil
}

func parseKeys(text []byte) (map[int][]byte, error) {
	keys := map[int][]byte{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxSecretFile+1)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		number := 1
		if len(keys) > 0 {
			var err error
			if number, err = strconv.Atoi(words[0]); err != nil || len(words) != 2 || number < 2 || number > seal.MaxGeneration || keys[number] != nil {
				return nil, fmt.Errorf("line %d should be the number of a further generation and its key", n)
			}
			words = words[1:]
		}
		key, err := hex.DecodeString(words[0])
		if err != nil || len(words) != 1 || len(key) != secretSize {
			return nil, fmt.Errorf("it should be %d hexadecimal digits (line %d)", 2*secretSize, n)
		}
		keys[number] = key
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("it should be %d hexadecimal digits", 2*secretSize)
	}
	return keys, nil
}

// OpenRing reads the file of the installation's secret for a database. It returns an
// error if the secret is another's, or a generation is missing that something may be sealed
// with.
func OpenRing(ctx context.Context, s *store.Store, path string) (*seal.Ring, error) {
	keys, err := ReadKeys(path)
	if err != nil {
		return nil, err
	}
	if err := Check(ctx, s, keys[1]); err != nil {
		return nil, err
	}
	all, err := readGenerations(ctx, s)
	if err != nil {
		return nil, err
	}
	use, retired, err := matchKeys(keys, all)
	if err != nil {
		return nil, err
	}
	return seal.NewRing(keys, use, retired)
}

// CheckFile returns an error if the file of a secret does not fit a database.
func CheckFile(ctx context.Context, s *store.Store, path string) error {
	_, err := OpenRing(ctx, s, path)
	return err
}

func readGenerations(ctx context.Context, s *store.Store) (all []admin.Generation, err error) {
	err = s.View(ctx, func(tx *store.Tx) error {
		all, err = admin.Generations(ctx, tx)
		return err
	})
	return all, err
}

// matchKeys compares keys with the generations of a database, and drops those that it knows
// by another key. It returns the generation to seal with and the retired ones.
func matchKeys(keys map[int][]byte, all []admin.Generation) (use int, retired []int, err error) {
	for _, g := range all {
		key := keys[g.Number]
		ours := key != nil && hmac.Equal(g.Check, secretCheck(key))
		switch {
		case !g.RetiredAt.IsZero():
			retired = append(retired, g.Number)
		case g.UsedAt > 0 && key == nil:
			return 0, nil, fmt.Errorf("generation %d is missing in it: put the newest file of the secret there, from another instance or your backup", g.Number)
		case g.UsedAt > 0 && !ours:
			return 0, nil, fmt.Errorf("generation %d in it is another key than the database knows: put the newest file of the secret there, from another instance or your backup", g.Number)
		}
		if !ours {
			delete(keys, g.Number)
		}
	}
	return upkeep.UsedGeneration(all), retired, nil
}

// AddKey makes a new generation: its key in the file, and its number in the database. If it
// was interrupted between the two, it goes on with the one in the file.
func AddKey(ctx context.Context, s *store.Store, path, by string) (number int, err error) {
	keys, err := ReadKeys(path)
	if err == nil {
		err = CheckFile(ctx, s, path)
	}
	if err != nil {
		return 0, err
	}
	g, err := upkeep.ReadGenerations(ctx, s)
	if err != nil {
		return 0, err
	}
	if g.Level < admin.LevelGenerations { // before the file is changed
		return 0, upkeep.ErrGenerationLevel
	}
	last, fresh := slices.Max(slices.Collect(maps.Keys(keys))), false
	if number = last; number == 1 || g.Find(number) != nil {
		for _, known := range g.All {
			last = max(last, known.Number)
		}
		if number, fresh = last+1, true; number > seal.MaxGeneration {
			return 0, fmt.Errorf("there are %d generations already, and a number is never used again", seal.MaxGeneration)
		}
		keys[number] = newKey()
		if err := addLine(path, number, keys[number]); err != nil {
			return 0, err
		}
	}
	_, err = upkeep.AddGeneration(ctx, s, number, secretCheck(keys[number]), secretCheck(keys[1]), by)
	if fresh && errors.Is(err, upkeep.ErrGenerationOther) { // another was added at the same time
		err = errors.Join(err, RemoveKey(path, number))
	}
	return number, err
}

func addLine(path string, number int, key []byte) error {
	return editSecret(path, func(lines []string) []string {
		return append(lines, fmt.Sprintf("%d %s", number, hex.EncodeToString(key)))
	})
}

// RemoveKey deletes a generation from the file of the secret. The first one stays, because
// it is the root. It is no error if the file does not have it.
func RemoveKey(path string, number int) error {
	keys, err := ReadKeys(path)
	if err != nil || number == 1 || keys[number] == nil {
		return err
	}
	return editSecret(path, func(lines []string) []string {
		root := false
		return slices.DeleteFunc(lines, func(line string) bool {
			words := strings.Fields(line)
			if len(words) == 0 || strings.HasPrefix(words[0], "#") {
				return false
			}
			if !root {
				root = true
				return false
			}
			return words[0] == strconv.Itoa(number)
		})
	})
}

// editSecret replaces the file of the secret by an edited one. It keeps the file's owner and
// mode: the server's user, not the one who runs the command, has to read it. It deletes what
// a killed command has left beside the file, because that holds the keys, too.
func editSecret(path string, edit func(lines []string) []string) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := edit(strings.Split(strings.TrimRight(string(text), "\r\n"), "\n"))
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	err = removePartial(path)
	if err == nil {
		err = writeAtomic(path, []byte(strings.Join(lines, "\n")+"\n"), func(name string) error {
			return errors.Join(system.SameOwner(name, path), os.Chmod(name, info.Mode().Perm()))
		})
	}
	if err != nil {
		return fmt.Errorf("change the file of the secret: %w; if it may not be changed here, change a copy that --secret-file names", err)
	}
	return nil
}
