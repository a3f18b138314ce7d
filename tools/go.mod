module till/tools

go 1.26.0

require (
	github.com/nyaruka/phonenumbers v1.8.1
	github.com/standard-webhooks/standard-webhooks/libraries v0.0.1
	till v0.0.0-00010101000000-000000000000
)

require (
	code.dny.dev/ssrf v0.3.0 // indirect
	golang.org/x/text v0.29.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)

replace till => ../
