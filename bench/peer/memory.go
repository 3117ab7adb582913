package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// The cluster, as the reference's informer caches hold it: indexed, and never waiting. It answers without the deep copies
// that a cache makes, so none of the time that is measured is this file's. It cannot be written to.
type memory struct {
	client.Client
	pods       map[client.ObjectKey]*corev1.Pod
	podsByNode map[string]map[client.ObjectKey]*corev1.Pod
	nodes      map[string]*corev1.Node
	claims     map[string]*v1.NodeClaim
	pools      []*v1.NodePool
	daemonSets []*appsv1.DaemonSet
	budgets    []*policyv1.PodDisruptionBudget
}

func newMemory(problem *problem) *memory {
	m := &memory{
		pods:       map[client.ObjectKey]*corev1.Pod{},
		podsByNode: map[string]map[client.ObjectKey]*corev1.Pod{},
		nodes:      map[string]*corev1.Node{},
		claims:     map[string]*v1.NodeClaim{},
		pools:      problem.pools,
		daemonSets: problem.daemonSets,
		budgets:    problem.budgets,
	}
	for _, node := range problem.nodes {
		m.nodes[node.Name] = node
	}
	for _, claim := range problem.claims {
		m.claims[claim.Name] = claim
	}
	for _, pod := range problem.pods {
		m.setPod(pod)
	}
	return m
}

// setPod is what the API server does when a pod is created or bound.
func (m *memory) setPod(pod *corev1.Pod) {
	key := client.ObjectKeyFromObject(pod)
	if old, ok := m.pods[key]; ok {
		delete(m.podsByNode[old.Spec.NodeName], key)
	}
	m.pods[key] = pod
	if m.podsByNode[pod.Spec.NodeName] == nil {
		m.podsByNode[pod.Spec.NodeName] = map[client.ObjectKey]*corev1.Pod{}
	}
	m.podsByNode[pod.Spec.NodeName][key] = pod
}

func (m *memory) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *corev1.Node:
		if node, ok := m.nodes[key.Name]; ok {
			*into = *node
			return nil
		}
	case *corev1.Pod:
		if pod, ok := m.pods[key]; ok {
			*into = *pod
			return nil
		}
	case *v1.NodeClaim:
		if claim, ok := m.claims[key.Name]; ok {
			*into = *claim
			return nil
		}
	case *v1.NodePool:
		for _, pool := range m.pools {
			if pool.Name == key.Name {
				*into = *pool
				return nil
			}
		}
	case *storagev1.CSINode:
	default:
		return fmt.Errorf("the benchmark has no objects of type %T", into)
	}
	return errors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (m *memory) List(_ context.Context, list client.ObjectList, given ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(given)
	switch list := list.(type) {
	case *corev1.PodList:
		list.Items = m.listPods(options)
	case *corev1.NodeList:
		list.Items = values(m.nodes, options)
	case *v1.NodeClaimList:
		list.Items = values(m.claims, options)
	case *v1.NodePoolList:
		list.Items = items(m.pools)
	case *appsv1.DaemonSetList:
		list.Items = items(m.daemonSets)
	case *policyv1.PodDisruptionBudgetList:
		list.Items = items(m.budgets)
	case *corev1.NamespaceList:
		list.Items = nil
	default:
		return fmt.Errorf("the benchmark has no lists of type %T", list)
	}
	return nil
}

func (m *memory) listPods(options *client.ListOptions) []corev1.Pod {
	from := m.pods
	if options.FieldSelector != nil {
		if node, ok := options.FieldSelector.RequiresExactMatch("spec.nodeName"); ok {
			from = m.podsByNode[node]
		}
	}
	var found []corev1.Pod
	for _, pod := range from {
		if selects(options, pod) {
			found = append(found, *pod)
		}
	}
	return found
}

func selects(options *client.ListOptions, object client.Object) bool {
	if options.Namespace != "" && options.Namespace != object.GetNamespace() {
		return false
	}
	return options.LabelSelector == nil || options.LabelSelector.Matches(labelsOf(object.GetLabels()))
}

// labelsOf reads a label map as the selectors want it.
type labelsOf map[string]string

func (l labelsOf) Has(label string) bool              { _, ok := l[label]; return ok }
func (l labelsOf) Get(label string) string            { return l[label] }
func (l labelsOf) Lookup(label string) (string, bool) { value, ok := l[label]; return value, ok }

func values[T any](from map[string]*T, options *client.ListOptions) []T {
	var found []T
	for _, object := range from {
		accessor, err := meta.Accessor(object)
		if err == nil && (options.LabelSelector == nil || options.LabelSelector.Matches(labelsOf(accessor.GetLabels()))) {
			found = append(found, *object)
		}
	}
	return found
}

func items[T any](from []*T) []T {
	found := make([]T, 0, len(from))
	for _, object := range from {
		found = append(found, *object)
	}
	return found
}
