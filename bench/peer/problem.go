package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

// A problem file has one JSON object per line: a header, instance types, and Kubernetes objects as an API server lists
// them. docs/reference/benchmarks.md describes it.
type problem struct {
	header     header
	types      []*cloudprovider.InstanceType
	pools      []*v1.NodePool
	claims     []*v1.NodeClaim
	nodes      []*corev1.Node
	pods       []*corev1.Pod
	daemonSets []*appsv1.DaemonSet
	budgets    []*policyv1.PodDisruptionBudget
}

type header struct {
	Name            string   `json:"name"`
	WellKnownLabels []string `json:"wellKnownLabels"`
	Preferences     string   `json:"preferences"`
}

type instanceType struct {
	Name         string                           `json:"name"`
	Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
	Offerings    []offering                       `json:"offerings"`
	Capacity     corev1.ResourceList              `json:"capacity"`
	Reserved     struct {
		Kube     corev1.ResourceList `json:"kube"`
		System   corev1.ResourceList `json:"system"`
		Eviction corev1.ResourceList `json:"eviction"`
	} `json:"reserved"`
}

type offering struct {
	Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
	PriceMicros  int64                            `json:"priceMicros"`
	Available    bool                             `json:"available"`
}

func load(path string) (*problem, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	problem := &problem{}
	reader := bufio.NewReaderSize(file, 1<<20)
	for number := 1; ; number++ {
		line, err := reader.ReadBytes('\n')
		if len(line) > 0 {
			if err := problem.add(line); err != nil {
				return nil, fmt.Errorf("%s, line %d: %w", path, number, err)
			}
		}
		if err == io.EOF {
			return problem, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (p *problem) add(line []byte) error {
	var kind struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case "Problem":
		if err := json.Unmarshal(line, &p.header); err != nil {
			return err
		}
		v1.WellKnownLabels = v1.WellKnownLabels.Insert(p.header.WellKnownLabels...)
		return nil
	case "InstanceType":
		var described instanceType
		if err := json.Unmarshal(line, &described); err != nil {
			return err
		}
		p.types = append(p.types, described.build())
		return nil
	case "NodePool":
		return decode(line, &p.pools)
	case "NodeClaim":
		return decode(line, &p.claims)
	case "Node":
		return decode(line, &p.nodes)
	case "Pod":
		return decode(line, &p.pods)
	case "DaemonSet":
		return decode(line, &p.daemonSets)
	case "PodDisruptionBudget":
		return decode(line, &p.budgets)
	default:
		return fmt.Errorf("unknown kind %q", kind.Kind)
	}
}

func decode[T any](line []byte, into *[]*T) error {
	object := new(T)
	if err := json.Unmarshal(line, object); err != nil {
		return err
	}
	*into = append(*into, object)
	return nil
}

func (t instanceType) build() *cloudprovider.InstanceType {
	offerings := cloudprovider.Offerings{}
	for _, described := range t.Offerings {
		offerings = append(offerings, &cloudprovider.Offering{
			Requirements: scheduling.NewNodeSelectorRequirements(described.Requirements...),
			Price:        float64(described.PriceMicros) / 1e6,
			Available:    described.Available,
		})
	}
	return &cloudprovider.InstanceType{
		Name:         t.Name,
		Requirements: scheduling.NewNodeSelectorRequirements(t.Requirements...),
		Offerings:    offerings,
		Capacity:     t.Capacity,
		Overhead: &cloudprovider.InstanceTypeOverhead{
			KubeReserved:      t.Reserved.Kube,
			SystemReserved:    t.Reserved.System,
			EvictionThreshold: t.Reserved.Eviction,
		},
	}
}
