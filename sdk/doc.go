// Package sdk serves the packages of the SDKs, so that anybody who has the address of a running
// service installs them with one line of their language's own tool:
//
//	npm install https://pay.example.com/sdk/till-sdk-0.1.0.tgz
//	pip install https://pay.example.com/sdk/till_sdk-0.1.0-py3-none-any.whl
//	composer config repositories.till composer https://pay.example.com/sdk/php
//	GOPROXY=https://pay.example.com/sdk/go go get github.com/till-project/till/sdk/go
//
// tools/sdkpack makes the folder packages from the sources beside it.
package sdk
