// Package conform plays the conformance scenarios of the SDKs: it starts a real
// Till, puts the proxy with bad habits in front of it and a driver before that,
// plays the steps, kills, and judges by the service's books and by what the shop
// did, never by the SDK's word. sdk/conformance/README.md is the protocol.
//
// Its tests are the suite: TestScenarios, TestMutants and TestShop.
package conform
