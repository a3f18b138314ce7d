# Every command a developer needs. 'make' alone prints this list.

SHELL := /bin/bash
GO    ?= go
FUZZTIME ?= 60s

# No flags for the compiler here: what 'go run', 'go vet' or 'go test' has compiled, each
# of them uses again, also without make.

.DEFAULT_GOAL := help

.PHONY: help
help: ## print this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## start the service with a demo client on 127.0.0.1:8080
	$(GO) run ./cmd/till dev

.PHONY: build
build: ## build the static binary ./till
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w" -o till ./cmd/till

# What the program also runs on. For these it is only built, and not optimised:
# that takes half of the time. A cold one takes 80 s of CPU, so 'make check' only
# checks the types, in 4 s each; 'make soak' and the hosted workflow build all.
TARGETS := linux/arm64 darwin/amd64 darwin/arm64 windows/amd64

.PHONY: cross
cross: ## build the program for every system that it runs on
	@set -e; for target in $(TARGETS); do echo "build for $$target"; \
		GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) build -gcflags=all='-N -l' -o /dev/null ./cmd/till; done

# Two questions. 'make test': does the product work? It needs Go, Node, PostgreSQL and
# Chromium. 'make check': is everything around it as it should be? Installing and
# compiling do not wait for each other, and later neither do tests.
.PHONY: test
test: export TILL_BINARY := $(CURDIR)/.built/till
test: ## run the Go tests on SQLite and PostgreSQL, and the stories of the console's users in Chromium
	$(MAKE) --no-print-directory -j2 program servers
	MAKEFLAGS= $(GO) run ./internal/db/pgtest/withpg -memory $(MAKE) --no-print-directory -j2 go-part e2e-part
	@echo "passed. 'make check' runs the rest: lint, the SDKs, every page in Chromium, the guides and their programs"

.PHONY: check
check: export TILL_BINARY := $(CURDIR)/.built/till
check: guide-tools python-tools php-tools e2e-tools sdk-typescript program ## run the rest: lint, SDKs, every page of the console, the guides
	MAKEFLAGS= $(GO) run ./internal/db/pgtest/withpg $(MAKE) --no-print-directory -j3 PYTHON=$(PYTHON) lint guides-part sdk-part sweep-part plain-part # each waits a lot

# The program that tests of other modules start: built once.
.PHONY: program
program:
	$(GO) build $(LINK) -o .built/till ./cmd/till

# PostgreSQL is installed by the first that starts it.
.PHONY: servers
servers: e2e-tools
	@$(GO) run ./internal/db/pgtest/withpg true

# What takes longest comes first: at the end there is little to wait for.
LONGEST := ./cmd/till ./api ./books ./collect ./store ./webhook ./payout ./server ./console

# What needs programs in other languages, or curl and sqlite3 as readers of guides do.
GUIDES := ^(TestGuides|TestEveryCallOfThePagesRuns|TestEveryReceiverOfThePagesActsOnce|TestTheReceiversOfTheGuideShipWhatIsPaid|TestTheExamplesWork|TestTheExamplesReadALogThatWasSetBack)$$

.PHONY: go-part
go-part:
	$(TEST) -timeout 18m -skip '$(GUIDES)' $(LONGEST) $$($(GO) list ./... | grep -vxF "$$($(GO) list $(LONGEST))")

# With TILL_EVERYTHING nothing may be missing on the machine.
.PHONY: guides-part
guides-part:
	TILL_EVERYTHING=1 $(TEST) -timeout 18m -run '$(GUIDES)' ./cmd/till ./webhook

# Once more without what only saves work: nothing may depend on it. Left out is what tests
# just that, or opens databases of its own.
NOT_PLAIN := ^(TestAnotherProcessIsHeard|TestAShortProcessIsHeard|TestAnUnknownCommitIsTold|TestALostListenerComesBack|TestCloseEndsTheHints|TestAWorkerIsWokenByAnotherInstance|TestAMigrationWaitsForInstancesThatAreNotRecorded|TestALockThatIsHeldIsTriedABoundedNumberOfTimes)$$

.PHONY: plain-part
plain-part:
	TILL_TEST_ENGINE=postgres-plain $(TEST) -skip '$(NOT_PLAIN)' ./store

# A part of what 'make sdk' does.
.PHONY: sdk-part
sdk-part:
	cd tools && $(GO) run ./crosscheck darwin/arm64 windows/amd64
	cd sdk/go && $(GO) vet ./... && $(TEST) ./...
	cd tools && $(TEST) -count=1 $$($(GO) list ./... | grep -v '^till/tools/conform') # they read files of other modules, which Go's cache does not see
	cd sdk/python && $(PYTHON) -W ignore::DeprecationWarning -m unittest
	php sdk/php/tests/run.php
	cd tools && TILL_SCENARIOS=part $(TEST) -run '^(TestScenarios|TestShop|TestShopGivesBack|TestShopWithCheckouts)$$' ./conform
	cd tools && TILL_SDK=typescript TILL_SCENARIOS=part TILL_ORDERS=200 TILL_KILLS=3 TILL_CHECKOUTS=50 TILL_CHECKOUT_KILLS=1 $(TEST) -run '^(TestScenarios|TestShop|TestShopGivesBack|TestShopWithCheckouts)$$' ./conform
	$(MAKE) --no-print-directory sdk-python-part sdk-php-part

# 'make lint' runs all of go vet. A program without tables for debuggers is linked in two
# thirds of the time, and there are eighty; what is compiled is the same.
LINK := -ldflags='-s -w'
TEST := $(GO) test -vet=off $(LINK)

# What many goroutines share, for the race detector. It takes several times as long, so
# 'make check' leaves it to 'make race-part' and 'make race'; 'make soak' and the hosted
# workflow run the part.
RACING := ./store ./collect ./payout ./webhook ./account ./engine ./internal/dev/relay ./internal/batch ./internal/db/... ./internal/dev/faulty ./internal/hint \
	./internal/dev/loadgen ./internal/loop ./internal/quota ./server ./tokens ./provider/wire ./provider/simulator ./provider/sandbox

# SQLite is C that was translated to Go: the race detector would make it several
# times slower, and finds nothing in what one goroutine uses at a time.
NORACE := -gcflags=modernc.org/sqlite/lib='-race=false -dwarf=false' -gcflags=modernc.org/libc='-race=false -dwarf=false'

.PHONY: race-part
race-part: compiler ## run what goroutines share with the race detector, on both engines (ten minutes)
	$(GO) run ./internal/db/pgtest/withpg env CGO_ENABLED=1 $(TEST) -race $(NORACE) -timeout 40m $(RACING)

# The race detector needs a C compiler; nothing else here does.
.PHONY: compiler
compiler:
	@command -v $${CC:-cc} >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1 || { \
		echo "installing a C compiler for the race detector"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq gcc libc6-dev; }

# The guides tell their reader to use these, and tests do.
.PHONY: guide-tools
guide-tools:
	@command -v curl >/dev/null 2>&1 && command -v sqlite3 >/dev/null 2>&1 && command -v node >/dev/null 2>&1 && \
		php -r 'exit(extension_loaded("curl") && extension_loaded("pdo_sqlite") ? 0 : 1);' >/dev/null 2>&1 && command -v python3 >/dev/null 2>&1 && python3 -c 'import ensurepip' 2>/dev/null && command -v composer >/dev/null 2>&1 && command -v age-keygen >/dev/null 2>&1 || { \
		echo "installing curl, sqlite3, age, node, php, composer and python3 for the tests of the guides"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
			curl sqlite3 age $$(command -v node >/dev/null 2>&1 || echo nodejs) php-cli php-curl php-sqlite3 composer python3 python3-venv; }

# The TypeScript SDK, built by the compiler that its lock file names, and its tests.
.PHONY: sdk-typescript
sdk-typescript:
	@command -v npm >/dev/null 2>&1 || { \
		echo "installing npm for the TypeScript SDK"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends npm; }
	cd sdk/typescript && { [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci; } && npm run --silent build && \
		{ out=$$(npm run --silent test 2>&1) || { echo "$$out"; exit 1; }; } && echo "$$out" | grep '^# pass\|^# minified'

# Its stores on real databases, its receivers in their frameworks, and the suite. A
# Node that has SQLite comes with them.
.PHONY: sdk-typescript-all
sdk-typescript-all: sdk-typescript ## the same for the SDK of TypeScript alone
	cd sdk/typescript/engines && { [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci; }
	node=$$(ls $(CURDIR)/sdk/typescript/engines/node_modules/node-linux-*/bin/node) && \
		$(GO) run ./internal/db/pgtest/withpg env -C sdk/typescript/engines $$node --test --test-timeout=300000 --test-reporter=dot && \
		set -o pipefail && cd tools && TILL_SDK=typescript TILL_NODE=$$node $(GO) test -count=1 -v ./conform | grep -v '^=== \|^    --- PASS'

# The SDKs: vectors, stores on real databases, every scenario, every mutant.
.PHONY: sdk
sdk: ## hold the SDKs to the conformance suite (one to two minutes)
	@command -v mariadbd >/dev/null 2>&1 || { \
		echo "installing mariadb for the SDK's store on MySQL"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends mariadb-server-core; }
	cd sdk/go && $(GO) vet ./... && $(GO) test -count=1 ./...
	cd tools && $(GO) test -count=1 ./sdkgen ./sqlstores
	set -o pipefail; cd tools && $(GO) test -count=1 -v ./conform | grep -v '^=== \|^    --- PASS'
	$(MAKE) --no-print-directory sdk-typescript-all
	$(MAKE) --no-print-directory sdk-python sdk-php
	cd tools && TILL_EVERYTHING=1 PYTHON=$(PYTHON) $(GO) test -count=1 -v ./handlers | grep -v '^=== '
	$(MAKE) --no-print-directory sdk-lint collections
	set -o pipefail; TILL_NEWCOMER=1 $(GO) test -count=1 -timeout 10m -run '^TestNewcomer$$' -v ./cmd/till | grep -v '^=== '

# The API's description and the npm package, by other people's linters: some 150 MB, for
# this alone. TestTheDescriptionIsComplete in tools/sdkgen holds what they found.
.PHONY: sdk-lint
sdk-lint: sdk-typescript ## lint the API's description and the npm package
	@[ -x .linters/node_modules/.bin/redocly ] || npm install --silent --no-audit --no-fund --no-save --prefix .linters @redocly/cli@2.77.0 publint@0.3.25 @arethetypeswrong/cli@0.18.5
	REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true .linters/node_modules/.bin/redocly lint --extends=recommended-strict api/openapi.yaml api/openapi.open.yaml api/openapi.json
	cd sdk/typescript && ../../.linters/node_modules/.bin/publint --strict . && ../../.linters/node_modules/.bin/attw --pack . --profile esm-only --format table-flipped

# In turns, so that both meet the same load of the machine.
.PHONY: sdk-cost
sdk-cost: sdk-typescript ## compare creates through each SDK with bare requests, at a real service
	set -e -o pipefail; cd tools; for sdk in go typescript python php; do TILL_COST=1000 TILL_SDK=$$sdk PYTHON=$(PYTHON) $(GO) test -count=1 -v -run '^(TestCost|TestCommits)$$' ./conform | grep -v "^=== "; done

# The collections of requests, by the command lines of their programs. They are some
# 270 MB of other people's code, for this one test.
.PHONY: collections
collections: ## run the collections for Postman and Bruno
	@[ -x .collections/node_modules/.bin/bru ] || npm install --silent --no-audit --no-fund --no-save --prefix .collections newman@6.2.2 @usebruno/cli@2.15.1
	set -o pipefail; TILL_COLLECTIONS=$(CURDIR)/.collections $(GO) test -count=1 -timeout 5m -run '^TestCollections$$' -v ./cmd/till | grep -v '^=== '

# The SDK for Python, with the interpreter of the distribution, because its
# frameworks and drivers come from there.
PYTHON ?= /usr/bin/python3

.PHONY: sdk-python
sdk-python: python-tools ## the same for the SDK of Python alone
	$(GO) run ./internal/db/pgtest/withpg env -C sdk/python TILL_EVERYTHING=1 $(PYTHON) -W ignore::DeprecationWarning -m unittest
	set -o pipefail; cd tools && TILL_SDK=python PYTHON=$(PYTHON) $(GO) test -count=1 -v ./conform | grep -v '^=== \|^    --- PASS'

.PHONY: sdk-python-part
sdk-python-part:
	cd tools && TILL_SDK=python PYTHON=$(PYTHON) TILL_SCENARIOS=part TILL_ORDERS=100 TILL_KILLS=2 TILL_CHECKOUTS=50 TILL_CHECKOUT_KILLS=1 $(TEST) -count=1 -run '^(TestScenarios|TestShop|TestShopGivesBack|TestShopWithCheckouts)$$' ./conform

.PHONY: python-tools
python-tools:
	@$(PYTHON) -c 'import django, flask, psycopg2, pymysql' 2>/dev/null && command -v openssl >/dev/null 2>&1 || { \
		echo "installing Django, Flask and drivers of databases for the tests of the SDK for Python"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
			python3 python3-django python3-flask python3-psycopg2 python3-pymysql openssl; }

.PHONY: sdk-php
sdk-php: php-tools ## the same for the SDK of PHP alone
	$(GO) run ./internal/db/pgtest/withpg env TILL_EVERYTHING=1 php sdk/php/tests/run.php
	set -o pipefail; cd tools && TILL_SDK=php $(GO) test -count=1 -v ./conform | grep -v '^=== \|^    --- PASS'

.PHONY: sdk-php-part
sdk-php-part:
	cd tools && TILL_SDK=php TILL_SCENARIOS=part TILL_ORDERS=100 TILL_KILLS=2 TILL_CHECKOUTS=50 TILL_CHECKOUT_KILLS=1 $(TEST) -count=1 -run '^(TestScenarios|TestShop|TestShopGivesBack|TestShopWithCheckouts)$$' ./conform

.PHONY: php-tools
php-tools:
	@php -r 'exit(extension_loaded("curl") && extension_loaded("pdo_sqlite") && extension_loaded("pdo_pgsql") && extension_loaded("pdo_mysql") && stream_resolve_include_path("Illuminate/Foundation/Application.php") ? 0 : 1);' >/dev/null 2>&1 || { \
		echo "installing PHP, its drivers of databases and Laravel for the tests of the SDK for PHP"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
			php-cli php-curl php-sqlite3 php-pgsql php-mysql php-mbstring php-laravel-framework; }

# The console's users in Chromium: 'make test' runs their stories, 'make check' opens
# every page, so that each language, theme and width comes up; 'make e2e' opens each in all
# eight, which takes ten minutes more. Pictures of it are in e2e/shots.
.PHONY: e2e
e2e: e2e-tools ## run the stories of the console's users in Chromium, and check every page in all variants
	cd e2e && TILL_E2E=full $(GO) test -count=1 -timeout 40m ./...

.PHONY: e2e-part
e2e-part:
	cd e2e && $(TEST) -count=1 -timeout 15m -skip '^TestEvery' ./...

.PHONY: sweep-part
sweep-part:
	cd e2e && $(TEST) -count=1 -timeout 30m -run '^TestEvery' ./...

.PHONY: screenshots
screenshots: e2e-tools ## take the pictures of the guides anew
	@command -v pngquant >/dev/null 2>&1 || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends pngquant; }
	cd e2e && TILL_SCREENSHOTS=../docs/guide/images $(GO) test -count=1 -run '^TestScreenshots$$' . && \
		pngquant --force --ext .png --strip --speed 1 64 ../docs/guide/images/*.png

.PHONY: e2e-tools
e2e-tools:
	@command -v chromium-headless-shell >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || { \
		echo "installing Chromium for the stories of the console"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium-headless-shell fonts-dejavu-core \
			$$(command -v npm >/dev/null 2>&1 || echo npm); }
	@cd e2e && { [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --silent; }

# The caller brings a cluster: docs/guide/growing.md says which. One package after the
# other, because all share its machines.
.PHONY: citus
citus: ## run the suites that keep money on the Citus cluster that TILL_TEST_CITUS_URL names
	@test -n "$$TILL_TEST_CITUS_URL" || { echo "TILL_TEST_CITUS_URL names no cluster; see docs/guide/growing.md"; exit 1; }
	$(TEST) -count=1 -p 1 -parallel 4 -timeout 1h ./store ./collect ./payout ./webhook ./books ./reconcile ./recovery ./privacy ./story ./upkeep ./api
	$(TEST) -count=1 -p 1 -timeout 30m -run '^(TestInstances|TestDoctorOnACluster|TestDistributingWaitsForInstances|TestNodesDie|TestANodeFreezes|TestShardsMove|TestATransactionInDoubtEnds|TestAnInstanceStartsBesideADeadNode|TestADistributionThatIsKilledGoesOn|TestTheReleaseBeforeOnACluster|TestTheSecretIsRotatedUnderLoad)$$' -v ./cmd/till ./server ./doctor

.PHONY: race
race: compiler guide-tools ## run every test with the race detector (half an hour)
	$(GO) run ./internal/db/pgtest/withpg env CGO_ENABLED=1 $(GO) test -race $(NORACE) -timeout 30m ./...

.PHONY: lint
lint: ## find mistakes that compile: gofmt, go vet, staticcheck
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	cd e2e && $(GO) vet ./...
	cd tools && $(GO) vet ./... && $(GO) build -o ../.staticcheck honnef.co/go/tools/cmd/staticcheck
	./.staticcheck ./...

.PHONY: vuln
vuln: ## look up known vulnerabilities of what the program calls (needs the Internet)
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.8.0 ./...

.PHONY: quick
quick: ## run the Go tests on SQLite, without those that run servers for long
	$(GO) test -short -skip '$(GUIDES)' ./...

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (60s)
	@set -e; for file in $$(grep -rl --include='*_test.go' '^func Fuzz' . | grep -v '^./tools/'); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\)(.*/\1/p' $$file); do \
			echo "== $$target in $$(dirname $$file)"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$(dirname $$file); \
		done; \
	done

.PHONY: bench
bench: ## fill the table of speed and memory on both engines, 1 million rows (29 minutes); writes bench/report.*
	$(GO) run ./bench -report report

.PHONY: bench-full
bench-full: ## the same with 10 million rows (40 minutes); writes bench/report-full.*
	$(GO) run ./bench -rows 10000000 -report report-full

# Each part prints what it did and what it counted. A quiet machine of two
# cores needs about an hour and a half for all of them.
.PHONY: soak
soak: ## kill, pause, fail over, race payouts and compare for an hour and a half, and check the books each time
	$(GO) run ./internal/db/pgtest/withpg $(MAKE) --no-print-directory soak-parts

.PHONY: soak-parts
soak-parts: cross race-part
	@command -v promtool >/dev/null 2>&1 || { \
		echo "installing promtool for the tests of the alerts"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus; }
	$(GO) test -count=1 ./deploy
	@command -v nginx >/dev/null 2>&1 && command -v haproxy >/dev/null 2>&1 || { \
		echo "installing nginx and HAProxy for the tests of the guide's proxies"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nginx-light haproxy; }
	TILL_PROXIES=1 $(GO) test -count=1 -timeout 10m -run '^TestTheProxiesOfTheGuide$$' -v ./server
	set -o pipefail; dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && deploy/release.sh "$$dir" linux/amd64 >/dev/null && \
		TILL_RELEASE=$$dir $(GO) test -count=1 -timeout 20m -run '^TestTheInstallationOfTheGuide$$' -v ./cmd/till | grep -v '^=== '
	@command -v pgbackrest >/dev/null 2>&1 || { \
		echo "installing pgBackRest for the page about backups of PostgreSQL"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends pgbackrest; }
	dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && $(GO) build -o "$$dir/till" ./cmd/till && deploy/pgbackrest.sh "$$dir/till"
	TILL_FLIPS=1500 $(GO) test -count=1 -timeout 10m -run '^TestAFlippedByteInMoneyIsNoticed$$' -v ./books
	TILL_SCRIPTS=1000 $(GO) test -count=1 -timeout 5m -run '^TestEnginesAnswerAlike$$' -v ./api
	TILL_OUTAGE=6h TILL_HERD=4000 $(GO) test -count=1 -timeout 10m -run '^(TestSixHoursOfOutage|TestAHerdOfDueStepsIsWorkedOffFairly)$$' -v ./collect
	TILL_EFFECTS=all $(GO) test -count=1 -timeout 90m -run '^(TestNthEffect|TestMigrationsStopAnywhere)$$' ./sim ./store
	TILL_PAYOUT_ROUNDS=500 $(GO) test -count=1 -timeout 20m -run '^(TestAWalletIsNeverOverdrawn|TestACancelThatRacesTheSend)$$' -v ./payout
	TILL_PAYMENTS=2000 TILL_PAYOUTS=500 $(GO) test -count=1 -timeout 20m -run '^TestStorm$$' -v ./cmd/till
	TILL_OPEN=4000 TILL_FLOOD=10s $(GO) test -count=1 -timeout 10m -run '^TestOneInstanceStaysUnder250MB$$' -v ./cmd/till
	TILL_SECONDS=300 $(GO) test -count=1 -timeout 12m -run '^TestInstances$$' -v ./cmd/till
	TILL_FAILOVERS=5 $(GO) test -count=1 -timeout 12m -run '^TestFailover$$' -v ./cmd/till
	TILL_KILLS=100 $(GO) test -count=5 -timeout 30m -run '^TestKill$$' -v ./cmd/till
	TILL_KILLS=100 $(GO) test -count=1 -timeout 20m -run '^TestKilledBackups$$' -v ./cmd/till
	TILL_KILLS=50 $(GO) test -count=1 -timeout 20m -run '^TestKilledUpgrades$$' -v ./cmd/till
	TILL_ROWS=1000000 $(GO) test -count=1 -timeout 20m -run '^TestBackupsOfManyPayments$$' -v ./cmd/till
	TILL_ROWS=1000000 $(GO) test -count=1 -timeout 20m -run '^TestGaugesOfManyPayments$$' -v ./bench/seed
	TILL_ROLLING=120 $(GO) test -count=1 -timeout 30m -run '^TestRolling$$' -v ./cmd/till
	TILL_MIGRATE_ROWS=1000000 $(GO) test -count=1 -timeout 30m -run '^TestMigrationsOfManyRows$$' -v ./cmd/till
	$(MAKE) --no-print-directory reproduce RELEASE_TARGETS=linux/amd64
	cd tools && TILL_ORDERS=10000 TILL_KILLS=50 TILL_REFUND_ORDERS=10000 TILL_REFUND_KILLS=25 TILL_CHECKOUTS=10000 TILL_CHECKOUT_KILLS=25 $(GO) test -count=1 -timeout 30m -run '^TestShop' -v ./conform
	cd tools && TILL_WEBHOOK_PAYMENTS=5000 TILL_WEBHOOK_KILLS=20 TILL_WEBHOOK_SHOPS=10 $(GO) test -count=1 -timeout 30m -run '^TestWebhooksBetweenKills$$' -v ./conform
	cd tools && TILL_LIST=100000 $(GO) test -count=1 -timeout 30m -run '^TestLongLists$$' -v ./conform
	$(MAKE) --no-print-directory sdk-typescript
	cd tools && TILL_SDK=typescript TILL_ORDERS=10000 TILL_KILLS=50 TILL_REFUND_ORDERS=10000 TILL_REFUND_KILLS=25 TILL_CHECKOUTS=10000 TILL_CHECKOUT_KILLS=25 $(GO) test -count=1 -timeout 40m -run '^TestShop' -v ./conform
	cd tools && TILL_SDK=python PYTHON=$(PYTHON) TILL_ORDERS=10000 TILL_KILLS=50 TILL_REFUND_ORDERS=10000 TILL_REFUND_KILLS=25 TILL_CHECKOUTS=10000 TILL_CHECKOUT_KILLS=25 $(GO) test -count=1 -timeout 40m -run '^TestShop' -v ./conform
	cd tools && TILL_SDK=php TILL_ORDERS=10000 TILL_KILLS=50 TILL_REFUND_ORDERS=10000 TILL_REFUND_KILLS=25 TILL_CHECKOUTS=10000 TILL_CHECKOUT_KILLS=25 $(GO) test -count=1 -timeout 40m -run '^TestShop' -v ./conform

# The release before is the commit or tag in cmd/till/testdata/release-before.txt; it is
# built from git.
.PHONY: upgrade-test
upgrade-test: ## run the release before and this program on one database, in either order (three minutes)
	$(GO) run ./internal/db/pgtest/withpg env TILL_ROLLING=$${TILL_ROLLING:-30} $(GO) test -count=1 -timeout 20m -run '^TestRolling$$' -v ./cmd/till

.PHONY: migration-times
migration-times: ## say how long each migration since the release before takes on a million payments (ten minutes)
	$(GO) run ./internal/db/pgtest/withpg env TILL_MIGRATE_ROWS=$${ROWS:-1000000} $(GO) test -count=1 -timeout 30m -run '^TestMigrationsOfManyRows$$' -v ./cmd/till

.PHONY: fixture
fixture: ## leave what this release writes in books/testdata: make fixture RELEASE=v1.2.0
	$(GO) run ./internal/db/pgtest/withpg env TILL_FIXTURE=$(RELEASE) $(GO) test -count=1 -timeout 10m -run '^TestMakeFixture$$' -v ./cmd/till

# After a change of an SDK. tools/sdkpack has a test that nobody forgot it.
.PHONY: sdk-packages
sdk-packages: sdk-typescript ## make the packages of the SDKs anew, which the service has at /sdk/
	cd tools && $(GO) run ./sdkpack

.PHONY: release
release: ## build what a release consists of into dist/, and sign it with TILL_SIGNING_KEY=FILE
	deploy/release.sh dist
	[ -z "$$TILL_SIGNING_KEY" ] || deploy/sign.sh dist "$$TILL_SIGNING_KEY"

# The second build starts with an empty cache: each target takes minutes. RELEASE_TARGETS=linux/amd64
# builds for one system; without it, for all that a release has.
.PHONY: reproduce
reproduce: ## build a release twice, in different folders, and compare every byte
	deploy/reproduce.sh $(RELEASE_TARGETS)

.PHONY: generate
generate: ## write the country table anew from libphonenumber data
	$(GO) generate .
