package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

type settled struct {
	// Whether it came to rest within the limit.
	Settled bool `json:"settled"`
	// Whether it rests because its search of single nodes runs into its time-out again and again, and not because it has
	// looked at every node.
	TimesOut bool `json:"times_out"`
	// Passes that found something: each waits out one hold.
	Rounds        int     `json:"rounds"`
	Commands      int     `json:"commands"`
	Removed       int     `json:"removed"`
	Launched      int     `json:"launched"`
	Evictions     int     `json:"evictions"`
	CostBefore    float64 `json:"cost_before"`
	CostAfter     float64 `json:"cost_after"`
	SettleSeconds float64 `json:"settle_s"`
	RealNanos     int64   `json:"real_ns"`
}

// The wait between a consolidation's decision and its validation.
const hold = 15 * time.Second

// How often it says how far it is.
const progress = time.Minute

// settle runs the reference's consolidation until it finds nothing more. A pass is what its controller does: the methods
// in their order, the first that finds something ends it. Its commands are then carried out at once, as they were
// simulated: nodes come and go in no time, and only the holds count. Time-outs are its own, on the real clock.
func settle(problem *problem, limit time.Duration) (*settled, error) {
	clk := clock.RealClock{}
	w, err := newWorld(problem, clk)
	if err != nil {
		return nil, err
	}
	queue := disruption.NewQueue(w.client, w.recorder, w.cluster, clk, w.provisioner)
	common := disruption.MakeConsolidation(clk, w.cluster, w.client, w.provisioner, w.cloud, w.recorder, queue)
	trust := disruption.WithValidator(trusting{})
	single := disruption.NewSingleNodeConsolidation(common, trust)
	methods := []disruption.Method{
		disruption.NewEmptiness(common, trust),
		disruption.NewMultiNodeConsolidation(common, trust),
		single,
	}
	answer := &settled{CostBefore: w.cost()}
	start, shown := time.Now(), time.Now()
	fruitless := 0
	for time.Since(start) < limit {
		if time.Since(shown) > progress {
			shown = time.Now()
			fmt.Fprintf(os.Stderr, "the reference: %d commands in %s, $%.2f/h of %.2f\n", answer.Commands, time.Since(start).Round(time.Second), w.cost(), answer.CostBefore)
		}
		commands, err := w.pass(methods, queue)
		if err != nil {
			return nil, err
		}
		if len(commands) == 0 {
			// Pools that a search did not reach come first in the next one. What that does not reach either is never reached.
			fruitless++
			answer.TimesOut = !single.IsConsolidated()
			answer.Settled = !answer.TimesOut || fruitless == 2
			if answer.Settled {
				break
			}
			continue
		}
		fruitless, answer.TimesOut = 0, false
		answer.Rounds++
		for _, command := range commands {
			answer.Commands++
			if err := w.carryOut(command, answer); err != nil {
				return nil, err
			}
		}
	}
	answer.RealNanos = time.Since(start).Nanoseconds()
	answer.SettleSeconds = (time.Duration(answer.Rounds) * hold).Seconds()
	answer.CostAfter = w.cost()
	return answer, nil
}

func (w *world) pass(methods []disruption.Method, queue *disruption.Queue) ([]disruption.Command, error) {
	for _, method := range methods {
		candidates, _, err := disruption.GetCandidatesWithTotals(w.ctx, w.cluster, w.client, w.recorder, w.clock, w.cloud, method.ShouldDisrupt, method.Class(), queue, nil)
		if err != nil {
			return nil, err
		}
		if len(candidates) == 0 {
			continue
		}
		budgets, err := disruption.BuildDisruptionBudgetMapping(w.ctx, w.cluster, w.clock, w.client, w.cloud, w.recorder, method.Reason())
		if err != nil {
			return nil, err
		}
		commands, err := method.ComputeCommands(w.ctx, budgets, candidates...)
		if err != nil {
			return nil, err
		}
		var found []disruption.Command
		for _, command := range commands {
			if command.Decision() != disruption.NoOpDecision {
				found = append(found, command)
			}
		}
		if len(found) > 0 {
			return found, nil
		}
	}
	return nil, nil
}

// carryOut makes the cluster what the command's simulation said it would be.
func (w *world) carryOut(command disruption.Command, answer *settled) error {
	going := map[types.UID]bool{}
	for _, candidate := range command.Candidates {
		for _, pod := range w.client.podsByNode[candidate.Node.Name] {
			going[pod.UID] = true
		}
	}
	answer.Evictions += len(going)
	answer.Removed += len(command.Candidates)
	answer.Launched += len(command.Replacements)
	for at, replacement := range command.Replacements {
		name := fmt.Sprintf("new-%05d-%d", answer.Commands, at)
		if err := w.launch(name, replacement, command.Candidates[0]); err != nil {
			return err
		}
		if err := w.move(replacement.Pods, name, going); err != nil {
			return err
		}
	}
	for _, node := range command.Results.ExistingNodes {
		if err := w.move(node.Pods, node.Node.Name, going); err != nil {
			return err
		}
	}
	if len(going) > 0 {
		return fmt.Errorf("%d pods of %s have no place", len(going), command)
	}
	for _, candidate := range command.Candidates {
		delete(w.client.nodes, candidate.Node.Name)
		delete(w.client.claims, candidate.NodeClaim.Name)
		w.cluster.DeleteNode(candidate.Node.Name)
		w.cluster.DeleteNodeClaim(candidate.NodeClaim.Name)
	}
	return nil
}

func (w *world) move(pods []*corev1.Pod, to string, going map[types.UID]bool) error {
	for _, pod := range pods {
		delete(going, pod.UID)
		moved := w.client.pods[client.ObjectKeyFromObject(pod)].DeepCopy()
		moved.Spec.NodeName = to
		w.client.setPod(moved)
		if err := w.cluster.UpdatePod(w.ctx, moved); err != nil {
			return err
		}
	}
	return nil
}

// launch brings up the cheapest that could be launched, like one of the nodes that go.
func (w *world) launch(name string, replacement *disruption.Replacement, like *disruption.Candidate) error {
	requirements := replacement.Requirements
	option, offering := cheapest(replacement.InstanceTypeOptions, requirements)
	if option == nil {
		// It insists on spot also where there is none: a real launch would fail, again and again. Here it gets what there is.
		requirements = scheduling.NewRequirements(requirements.Values()...)
		delete(requirements, v1.CapacityTypeLabelKey)
		option, offering = cheapest(replacement.InstanceTypeOptions, requirements)
	}
	if option == nil {
		return fmt.Errorf("nothing can be launched for %s", name)
	}
	labels := map[string]string{}
	for key, value := range like.NodeClaim.Labels {
		labels[key] = value
	}
	for _, requirements := range []scheduling.Requirements{option.Requirements, offering.Requirements} {
		for key, requirement := range requirements {
			if values := requirement.Values(); requirement.Operator() == corev1.NodeSelectorOpIn && len(values) == 1 {
				labels[key] = values[0]
			}
		}
	}
	labels[v1.NodePoolLabelKey] = replacement.NodePoolName
	claim, node := like.NodeClaim.DeepCopy(), like.Node.DeepCopy()
	claim.Name, claim.UID, claim.Labels = name, types.UID("claim-"+name), labels
	claim.Status.ProviderID, claim.Status.NodeName = "bench://"+name, name
	claim.Status.Capacity, claim.Status.Allocatable = option.Capacity, option.Allocatable()
	node.Name, node.UID, node.Spec.ProviderID = name, types.UID("node-"+name), "bench://"+name
	node.Labels = map[string]string{corev1.LabelHostname: name, v1.NodeRegisteredLabelKey: "true", v1.NodeInitializedLabelKey: "true"}
	for key, value := range labels {
		node.Labels[key] = value
	}
	node.Status.Capacity, node.Status.Allocatable = option.Capacity, option.Allocatable()
	w.client.claims[name], w.client.nodes[name] = claim, node
	w.cluster.UpdateNodeClaim(claim)
	return w.cluster.UpdateNode(w.ctx, node)
}

func cheapest(options []*cloudprovider.InstanceType, requirements scheduling.Requirements) (*cloudprovider.InstanceType, *cloudprovider.Offering) {
	var kind *cloudprovider.InstanceType
	var best *cloudprovider.Offering
	for _, option := range options {
		for _, offering := range option.Offerings.Launchable().Compatible(requirements) {
			if best == nil || offering.Price < best.Price {
				kind, best = option, offering
			}
		}
	}
	return kind, best
}

// cost of all nodes per hour, by their labels.
func (w *world) cost() float64 {
	kinds := map[string]*cloudprovider.InstanceType{}
	all, _ := w.cloud.GetInstanceTypes(context.Background(), nil)
	for _, kind := range all {
		kinds[kind.Name] = kind
	}
	sum := 0.0
	for _, node := range w.client.nodes {
		if kind := kinds[node.Labels[corev1.LabelInstanceTypeStable]]; kind != nil {
			for _, offering := range kind.Offerings {
				if offering.Zone() == node.Labels[corev1.LabelTopologyZone] && offering.CapacityType() == node.Labels[v1.CapacityTypeLabelKey] {
					sum += offering.Price
				}
			}
		}
	}
	return sum
}
