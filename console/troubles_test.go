package console

import (
	"html"
	"strings"
	"testing"

	"till"
	"till/console/shell"
	"till/console/words"
	"till/store"
	"till/store/storetest"
)

// Each trouble that rows cause stands on the first page of the house, in words.
func TestTheHouseIsToldEachTrouble(t *testing.T) {
	t.Parallel()
	engine := sqlite()
	config := engine.Config(t)
	engine.Config = func(testing.TB) store.Config { return config }
	w := newWorld(t, engine)
	w.be(till.RoleAdmin, "en")
	for _, c := range storetest.Causes(t, config.Path) {
		word := html.EscapeString(words.For("en").T("house.trouble_" + string(c.Name)))
		if c.Rows != nil && strings.Contains(w.get(shell.Prefix+"/house"), word) {
			t.Fatalf("%s is there before its cause", c.Name)
		}
		for _, row := range c.Rows {
			storetest.Raw(t, config.Path, row)
		}
		if !strings.Contains(w.get(shell.Prefix+"/house"), word) {
			t.Errorf("the house is not told %s: %s", c.Name, word)
		}
	}
}
