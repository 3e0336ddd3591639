
ByJØH`M¼Í