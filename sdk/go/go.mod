module github.com/till-project/till/sdk/go

go 1.24
