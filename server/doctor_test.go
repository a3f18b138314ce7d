package server_test

import (
	"context"

	"till/doctor"
	"till/operators"
	"till/server"
)

func init() {
	server.Examine = func(ctx context.Context, database, file string) (map[string]string, error) {
		found, err := doctor.Examine(ctx, doctor.Setup{Source: operators.Source{Database: database, Config: file}})
		if err != nil {
			return nil, err
		}
		wrong := map[string]string{}
		for _, f := range found.All {
			if f.Verdict == doctor.Wrong {
				wrong[f.Name] = f.Detail
			}
		}
		return wrong, nil
	}
}
