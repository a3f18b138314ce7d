module receiver

go 1.24
