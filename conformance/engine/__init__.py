"""Ties a TLA+ model to running code, completely.

The engine knows nothing of the system under test. Its parts, in the order in which they build on each other:

* :mod:`.values`  - what TLC prints, as Python values, and back;
* :mod:`.tlc`     - one run of TLC as one value;
* :mod:`.graph`   - the complete labelled state graph, canonical and storable;
* :mod:`.tours`   - few long paths that take every edge of a graph;
* :mod:`.gates`   - real threads and processes, released one step at a time, killed at will;
* :mod:`.stage`   - real threads of this process, released one step at a time;
* :mod:`.replay`  - a graph driven through a real system: edges, refusals, invariants;
* :mod:`.trace`   - recorded runs, checked to be behaviours of the model;
* :mod:`.walk`    - random walks of the same system beyond the bound of the model;
* :mod:`.mutants` - named faults put into the code, and the detector that finds each first;
* :mod:`.code_mutants`, :mod:`.model_mutants` - faults generated from the text of code and models;
* :mod:`.judge`   - what TLC says of many mutants of a model in one run;
* :mod:`.manifest` - the list of all runs of all models with their pinned results.
"""
