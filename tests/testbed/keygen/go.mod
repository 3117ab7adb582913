module kerf/testbed/keygen

go 1.26.0
