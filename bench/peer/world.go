package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

// The reference's own benchmark runs with this many workers.
const workers = 5

// world is the reference's controllers' view of the problem.
type world struct {
	ctx         context.Context
	client      *memory
	cloud       *cloud
	cluster     *state.Cluster
	provisioner *provisioning.Provisioner
	recorder    events.Recorder
	clock       clock.Clock
	problem     *problem
}

func newWorld(problem *problem, clk clock.Clock) (*world, error) {
	settings := &options.Options{
		CPURequests:       workers * 1000,
		MemoryLimit:       -1,
		BatchMaxDuration:  10 * time.Second,
		BatchIdleDuration: time.Second,
		PreferencePolicy:  options.PreferencePolicy(problem.header.Preferences),
		MinValuesPolicy:   options.MinValuesPolicyStrict,
		IgnoreDRARequests: true,
		FeatureGates:      options.FeatureGates{ReservedCapacity: true},
	}
	ctx := options.ToContext(injection.WithControllerName(context.Background(), "provisioner"), settings)
	w := &world{
		ctx:      ctx,
		client:   newMemory(problem),
		cloud:    &cloud{types: problem.types},
		recorder: events.NewRecorder(&record.FakeRecorder{}),
		clock:    clk,
		problem:  problem,
	}
	w.cluster = state.NewCluster(clk, w.client, w.cloud)
	for _, claim := range problem.claims {
		w.cluster.UpdateNodeClaim(claim)
	}
	for _, node := range problem.nodes {
		if err := w.cluster.UpdateNode(ctx, node); err != nil {
			return nil, fmt.Errorf("taking in node %s: %w", node.Name, err)
		}
	}
	for _, pod := range problem.pods {
		if err := w.cluster.UpdatePod(ctx, pod); err != nil {
			return nil, fmt.Errorf("taking in pod %s: %w", pod.Name, err)
		}
	}
	w.provisioner = provisioning.NewProvisioner(w.client, w.recorder, w.cloud, w.cluster, clk, nil, nil)
	return w, nil
}

// price of a claim: that of the cheapest offering that could be launched for it.
func price(claim *scheduling.NodeClaim) float64 {
	if _, offering := cheapest(claim.InstanceTypeOptions, claim.Requirements); offering != nil {
		return offering.Price
	}
	return 0
}

// peakMemory of this process, in bytes.
func peakMemory() int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(text), "\n") {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes * 1024
		}
	}
	return 0
}

// cloud knows the problem's instance types and nothing else.
type cloud struct {
	cloudprovider.CloudProvider
	types []*cloudprovider.InstanceType
}

func (c *cloud) GetInstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return c.types, nil
}

func (c *cloud) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&v1alpha1.KWOKNodeClass{}}
}

func (c *cloud) RepairPolicies() []cloudprovider.RepairPolicy { return nil }

func (c *cloud) Name() string { return "benchmark" }
