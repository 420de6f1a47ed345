SCHEMA = "symcc-query-ir-v1"
