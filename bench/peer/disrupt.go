package main

import (
	"context"
	"fmt"
	"sort"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
)

type disrupted struct {
	// Candidates that its consolidation would look at, and how long it took to find them.
	Candidates     int   `json:"candidates"`
	CandidateNanos int64 `json:"candidates_ns"`
	// How many of them were looked at here, and the mean time for one.
	Sample            int   `json:"sample"`
	PerCandidateNanos int64 `json:"per_candidate_ns"`
	Deleted           int   `json:"deleted"`
	Replaced          int   `json:"replaced"`
	Kept              int   `json:"kept"`
	// One run of its search over several nodes at once, within its own time-out of a minute.
	MultiNanos int64 `json:"multi_ns"`
	MultiNodes int   `json:"multi_nodes"`
	PeakBytes  int64 `json:"peak_bytes"`
}

// trusting is a validator that neither waits nor asks again: only the first decision is measured.
type trusting struct{}

func (trusting) Validate(_ context.Context, command disruption.Command, _ time.Duration) (disruption.Command, error) {
	return command, nil
}

// disrupt times the reference's consolidation: each of a sample of candidates alone, as its single-node method does, and
// one run of its multi-node method.
func disrupt(problem *problem, sample int) (*disrupted, error) {
	clk := clock.RealClock{}
	w, err := newWorld(problem, clk)
	if err != nil {
		return nil, err
	}
	queue := disruption.NewQueue(w.client, w.recorder, w.cluster, clk, w.provisioner)
	trust := disruption.WithValidator(trusting{})
	// A method remembers that it found nothing: each question gets a fresh one.
	single := func() *disruption.SingleNodeConsolidation {
		return disruption.NewSingleNodeConsolidation(disruption.MakeConsolidation(clk, w.cluster, w.client, w.provisioner, w.cloud, w.recorder, queue), trust)
	}
	start := time.Now()
	method := single()
	candidates, _, err := disruption.GetCandidatesWithTotals(w.ctx, w.cluster, w.client, w.recorder, clk, w.cloud, method.ShouldDisrupt, method.Class(), queue, nil)
	if err != nil {
		return nil, err
	}
	found := time.Since(start)
	if len(candidates) == 0 {
		return nil, fmt.Errorf("the reference sees no candidates")
	}
	sort.Slice(candidates, func(i, j int) bool { return candidates[i].Name() < candidates[j].Name() })
	answer := &disrupted{
		Candidates:     len(candidates),
		CandidateNanos: found.Nanoseconds(),
		Sample:         min(sample, len(candidates)),
	}
	start = time.Now()
	for at := range answer.Sample {
		candidate := candidates[at*len(candidates)/answer.Sample]
		commands, err := single().ComputeCommands(w.ctx, map[string]int{candidate.NodePool.Name: 1}, candidate)
		if err != nil {
			return nil, err
		}
		switch {
		case len(commands) == 0:
			answer.Kept++
		case commands[0].Decision() == disruption.DeleteDecision:
			answer.Deleted++
		default:
			answer.Replaced++
		}
	}
	answer.PerCandidateNanos = time.Since(start).Nanoseconds() / int64(answer.Sample)
	multi := disruption.NewMultiNodeConsolidation(disruption.MakeConsolidation(clk, w.cluster, w.client, w.provisioner, w.cloud, w.recorder, queue), trust)
	budgets, err := disruption.BuildDisruptionBudgetMapping(w.ctx, w.cluster, clk, w.client, w.cloud, w.recorder, multi.Reason())
	if err != nil {
		return nil, err
	}
	start = time.Now()
	commands, err := multi.ComputeCommands(w.ctx, budgets, candidates...)
	if err != nil {
		return nil, err
	}
	answer.MultiNanos = time.Since(start).Nanoseconds()
	if len(commands) > 0 {
		answer.MultiNodes = len(commands[0].Candidates)
	}
	answer.PeakBytes = peakMemory()
	return answer, nil
}
