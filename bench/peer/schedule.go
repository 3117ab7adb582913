package main

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	podutils "sigs.k8s.io/karpenter/pkg/utils/pod"
)

type scheduled struct {
	SetupNanos  int64   `json:"setup_ns"`
	SolveNanos  int64   `json:"solve_ns"`
	Nodes       int     `json:"nodes"`
	CostPerHour float64 `json:"cost_per_hour"`
	OnExisting  int     `json:"pods_on_existing"`
	Unscheduled int     `json:"unscheduled"`
	PeakBytes   int64   `json:"peak_bytes"`
	TimedOut    bool    `json:"timed_out"`
}

// schedule does what the reference's provisioner does in one pass, with a scheduler of its own: copy the nodes, build
// topology and scheduler (set-up), solve, order and truncate the instance types. Only the pass's time-out of a minute is
// another one.
func schedule(problem *problem, limit time.Duration) (*scheduled, error) {
	w, err := newWorld(problem, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	for _, pod := range problem.pods {
		if podutils.IsProvisionable(pod) {
			pods = append(pods, pod)
		}
	}
	given := []scheduling.Options{
		scheduling.DisableReservedCapacityFallback,
		scheduling.NumConcurrentReconciles(workers),
		scheduling.MinValuesPolicy(options.MinValuesPolicyStrict),
	}
	if problem.header.Preferences == string(options.PreferencePolicyIgnore) {
		given = append(given, scheduling.IgnorePreferences)
	}
	start := time.Now()
	nodes := w.cluster.DeepCopyNodes()
	scheduler, err := w.provisioner.NewScheduler(w.ctx, pods, nodes.Active(), sets.New[types.UID](), given...)
	if err != nil {
		return nil, err
	}
	built := time.Now()
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	results, err := scheduler.Solve(ctx, pods)
	timedOut := errors.Is(err, context.DeadlineExceeded)
	if err != nil && !timedOut {
		return nil, err
	}
	results = results.TruncateInstanceTypes(w.ctx, scheduling.MaxInstanceTypes)
	end := time.Now()
	answer := &scheduled{
		SetupNanos: built.Sub(start).Nanoseconds(),
		SolveNanos: end.Sub(built).Nanoseconds(),
		Nodes:      len(results.NewNodeClaims),
		TimedOut:   timedOut,
		PeakBytes:  peakMemory(),
	}
	placed := 0
	for _, claim := range results.NewNodeClaims {
		answer.CostPerHour += price(claim)
		placed += len(claim.Pods)
	}
	for _, node := range results.ExistingNodes {
		answer.OnExisting += len(node.Pods)
	}
	// A solve that ran out of time reports no error for pods that it did not get to.
	answer.Unscheduled = len(pods) - placed - answer.OnExisting
	return answer, nil
}
