module till/tools

go 1.26.0

require (
	github.com/nyaruka/phonenumbers v1.8.1
	till v0.0.0-00010101000000-000000000000
)

require (
	golang.org/x/text v0.29.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)

replace till => ../
