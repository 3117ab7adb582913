// Keygen writes the key pair with which a bed's API server signs and checks service account tokens.
//
//	keygen DIR    writes DIR/sa.key and DIR/sa.pub
//
// It stands here because the bed must not need more than Go and Rust, and neither openssl nor the standard library of
// Rust can be counted on to make keys.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: keygen DIR")
		os.Exit(2)
	}
	if err := writePair(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "keygen:", err)
		os.Exit(1)
	}
}

func writePair(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	if err := writePem(filepath.Join(dir, "sa.key"), "EC PRIVATE KEY", private); err != nil {
		return err
	}
	return writePem(filepath.Join(dir, "sa.pub"), "PUBLIC KEY", public)
}

func writePem(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
