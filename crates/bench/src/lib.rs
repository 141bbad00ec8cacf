//! Workloads that measure Ensilo: TPC-C and YCSB.
