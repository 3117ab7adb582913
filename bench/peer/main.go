// The reference on the same problem: reads a problem file that kerf-bench wrote, runs the reference's own packages on it
// and prints one JSON object. Nothing here decides anything; what is measured is the reference's code.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
)

func main() {
	log.SetLogger(logging.NopLogger)
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("say what to do: schedule, disrupt or settle")
	}
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	path := flags.String("problem", "", "the problem file")
	limit := flags.Duration("limit", 10*time.Minute, "give up a solve, or settling, after this long")
	sample := flags.Int("sample", 50, "disrupt: how many candidates to time")
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	problem, err := load(*path)
	if err != nil {
		return err
	}
	var answer any
	switch arguments[0] {
	case "schedule":
		answer, err = schedule(problem, *limit)
	case "disrupt":
		answer, err = disrupt(problem, *sample)
	case "settle":
		answer, err = settle(problem, *limit)
	default:
		err = fmt.Errorf("unknown task %q", arguments[0])
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(answer)
}
