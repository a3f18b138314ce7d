package console

import (
	"till/console/figures"
	"till/console/look"
	"till/console/shell"
)

// clientMenu is the menu of a merchant, in its groups. An item is shown to those who may
// see its page.
func clientMenu() [][]shell.MenuItem {
	return [][]shell.MenuItem{
		{
			{Key: "menu.home", Icon: "home", Path: "/home", Shortcut: "gh", Bar: true, Ranges: figures.Ranges},
			{Key: "menu.collect", Icon: "collect", Path: "/collect", Shortcut: "n", Bar: true},
			{Key: "menu.payments", Icon: "list", Path: "/payments", Shortcut: "gp", Bar: true, Ranges: look.Ranges},
			{Key: "menu.checkouts", Icon: "order", Path: "/checkouts", Shortcut: "gc", Ranges: look.Ranges},
			{Key: "menu.links", Icon: "link", Path: "/links", Shortcut: "gl"},
			{Key: "menu.refunds", Icon: "undo", Path: "/refunds", Ranges: look.Ranges},
			{Key: "menu.payouts", Icon: "out", Path: "/payouts", Shortcut: "go", Ranges: look.Ranges},
			{Key: "menu.wallets", Icon: "wallet", Path: "/wallets", Shortcut: "gw"},
		}, {
			{Key: "menu.webhooks", Icon: "hook", Path: "/webhooks"},
			{Key: "menu.keys", Icon: "key", Path: "/keys"},
			{Key: "menu.people", Icon: "people", Path: "/people"},
			{Key: "menu.audit", Icon: "log", Path: "/audit", Ranges: look.Ranges},
			{Key: "menu.settings", Icon: "sliders", Path: "/settings"},
		}, {
			{Key: "menu.sandbox", Icon: "phone", Path: "/sandbox"},
		},
	}
}

// houseMenu is the menu of the house, as clientMenu is that of a merchant.
func houseMenu() []shell.MenuItem {
	return []shell.MenuItem{
		{Key: "menu.house", Icon: "home", Path: "/house", Shortcut: "gh"},
		{Key: "frame.search", Icon: "glass", Path: "/house/search"},
		{Key: "menu.people", Icon: "people", Path: "/house/people"},
		{Key: "menu.audit", Icon: "log", Path: "/house/audit"},
	}
}
