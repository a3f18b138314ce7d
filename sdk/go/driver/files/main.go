// Files is the driver with the file store.
package main

import (
	"context"
	"strings"

	"github.com/till-project/till/sdk/go/driver"
	"github.com/till-project/till/sdk/go/filestore"
)

func main() {
	driver.Main(func(folder string) (driver.Shop[*filestore.Tx], error) {
		s, err := filestore.Open(folder)
		if err != nil {
			return driver.Shop[*filestore.Tx]{}, err
		}
		return driver.Shop[*filestore.Tx]{
			Store: s, Update: s.Update,
			Act: func(_ context.Context, tx *filestore.Tx, order, what string) error {
				tx.Set(order, strings.TrimPrefix(tx.Get(order)+"\t"+what, "\t"))
				return nil
			},
			Acted: func(context.Context) (map[string][]string, error) {
				notes, err := s.All()
				out := map[string][]string{}
				for order, what := range notes {
					out[order] = strings.Split(what, "\t")
				}
				return out, err
			},
		}, nil
	})
}
