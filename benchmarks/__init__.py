"""Speed against the limits and the peers: ``python -m benchmarks`` (or ``make bench``).

Every figure compares two things that ran side by side, on the same inputs, on this machine, in this run.

* ``measure``   what a sample, a bar and a row are; how rounds are interleaved
* ``inputs``    the problems, each as the file a producer writes and as the script an engine reads
* ``engines``   the engines used directly, without smtspool: the *limit*
* ``children``  processes for what must not share ours: engines that hang, peers that fork
* ``product``   smtspool, from files in a spool to committed answers
* ``rows/``     one file per figure
* ``report``    the table and the JSON
"""
