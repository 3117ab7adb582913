//go:build never

// Package conformance pins the reference's own suites. They are tests of its module, so nothing can import them; what
// they stand on can be imported.
package conformance

import _ "sigs.k8s.io/karpenter/test/pkg/environment/common"
