module till/sdk/go

go 1.24
