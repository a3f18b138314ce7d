package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// eachCommand calls f with every command of the program, the root included.
func eachCommand(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, child := range c.Commands() {
		eachCommand(child, f)
	}
}

const maxShort = 60 // characters of a Short: one line of a terminal beside the names

// Short is an imperative of one line without a full stop. Long says what the
// command does and when to use it. An example follows, and it is a command that
// exists, with flags that exist.
func TestHelp(t *testing.T) {
	t.Parallel()
	eachCommand(newRoot(), func(c *cobra.Command) {
		long := strings.Join(strings.Fields(c.Long), " ")
		switch path := c.CommandPath(); {
		case c.Short == "" || len(c.Short) > maxShort || strings.HasSuffix(c.Short, ".") || strings.ToUpper(c.Short[:1]) != c.Short[:1]:
			t.Errorf("%s: Short must be an imperative of at most %d characters without a full stop: %q", path, maxShort, c.Short)
		case c.HasSubCommands() && c.Long == "": // a group says what it is by its commands
		case !strings.Contains(long, "Use it ") && !strings.Contains(long, "Run it "):
			t.Errorf("%s: Long must say when to use the command:\n%s", path, c.Long)
		case c.Example == "":
			t.Errorf("%s has no example", path)
		}
		for _, line := range strings.Split(c.Long, "\n") {
			if len([]rune(line)) > 90 {
				t.Errorf("%s: a line of Long has more than 90 characters: %q", c.CommandPath(), line)
			}
		}
		for _, line := range strings.Split(strings.ReplaceAll(c.Example, "\\\n", " "), "\n") {
			checkExample(t, c, line)
		}
	})
}

var exampleFlag = regexp.MustCompile(` --([a-z-]+)`)

// checkExample checks that an example calls the command, with flags that it has
// and all that it requires.
func checkExample(t *testing.T, c *cobra.Command, line string) {
	t.Helper()
	if line == "" {
		return
	}
	_, call, found := strings.Cut(line, "till ")
	at, _, err := newRoot().Find(strings.Fields(call))
	if !found || err != nil || at.CommandPath() != c.CommandPath() && at.Parent().CommandPath() != c.CommandPath() {
		t.Errorf("%s: the example %q does not call it", c.CommandPath(), line)
		return
	}
	given := map[string]bool{}
	for _, m := range exampleFlag.FindAllStringSubmatch(line, -1) {
		given[m[1]] = true
		if at.Flags().Lookup(m[1]) == nil {
			t.Errorf("%s: the example %q has a flag that is not there: --%s", c.CommandPath(), line, m[1])
		}
	}
	at.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Annotations[cobra.BashCompOneRequiredFlag] != nil && !given[f.Name] && !strings.Contains(line, "TILL_") {
			t.Errorf("%s: the example %q lacks --%s", c.CommandPath(), line, f.Name)
		}
	})
}

// A flag says what it sets, in words without a full stop, and what nothing means
// where pflag does not show it: a number or a duration of zero.
func TestFlagHelp(t *testing.T) {
	t.Parallel()
	eachCommand(newRoot(), func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" || strings.HasSuffix(f.Usage, ".") {
				t.Errorf("%s --%s: %q", c.CommandPath(), f.Name, f.Usage)
			}
			silent := f.DefValue == "0" || f.DefValue == "0s"
			if number := strings.Contains("int int64 uint64 float64 duration", f.Value.Type()); number && silent && !strings.Contains(f.Usage, "(default ") {
				t.Errorf("%s --%s: say what it is without the flag, as (default …): %q", c.CommandPath(), f.Name, f.Usage)
			}
		})
	})
}

// Every noun works in the singular.
func TestSingularNouns(t *testing.T) {
	t.Parallel()
	for alias, name := range map[string]string{"case": "cases", "connection": "connections", "stray": "strays"} {
		if c, _, err := newRoot().Find([]string{alias}); err != nil || c.Name() != name {
			t.Errorf("till %s: %v, error %v", alias, c, err)
		}
	}
}

// Everybody on a machine can read command lines, and a database's URL may hold a
// password: what people copy gives it by a variable.
func TestNoExamplePutsTheDatabasesURLOnACommandLine(t *testing.T) {
	t.Parallel()
	onCommandLine := regexp.MustCompile(`--database[ =]["']?(postgres(ql)?://\S*:\S*@|postgres(ql)?://\w|\$)`)
	texts := map[string]string{}
	eachCommand(newRoot(), func(c *cobra.Command) { texts[c.CommandPath()] = c.Example + c.Long })
	pages, err := filepath.Glob("../../docs/guide/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts[page] = string(text)
	}
	for where, text := range texts {
		if found := onCommandLine.FindString(text); found != "" {
			t.Errorf("%s: %s", where, found)
		}
	}
}

// A person who looks for a command finds it under what it is for: no list is longer than
// a few lines, and each command is in one.
func TestHelpIsGrouped(t *testing.T) {
	t.Parallel()
	inGroup := map[string]int{}
	for _, c := range newRoot().Commands() {
		if c.GroupID == "" && c.Name() != "help" && c.Name() != "completion" {
			t.Errorf("till %s is in no group of helpGroups", c.Name())
		}
		if inGroup[c.GroupID]++; inGroup[c.GroupID] > 9 {
			t.Errorf("%q has more than nine commands", c.GroupID)
		}
	}
	for _, g := range helpGroups {
		for _, name := range strings.Fields(g.commands) {
			if c, _, err := newRoot().Find([]string{name}); err != nil || c.Name() != name {
				t.Errorf("%q names a command that is not there: %s", g.title, name)
			}
		}
	}
}
