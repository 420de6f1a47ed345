-------------------------- MODULE ProfileRecovery ---------------------------
(***************************************************************************)
(* How value profiles are published, and recovered by replay (F305).       *)
(*                                                                         *)
(* A coordinator keeps a window of telemetry records, builds a candidate   *)
(* of them under the policy of its configuration, and publishes it as a    *)
(* generation: an artifact (the evidence), a runtime file (the domains)    *)
(* and a state file (the window, and which generation is current), three   *)
(* durable renames with nothing to bind them. Each may fail, and the       *)
(* process may die, at any of them. After a restart a generation is served *)
(* only if its files verify and the surviving records lead to the same     *)
(* domains under today's policy, through the same Build; else it is built  *)
(* anew first.                                                             *)
(*                                                                         *)
(* Decided here                                                            *)
(*  - One site of one program: a record tells one value that its operand   *)
(*    took. How evidence becomes domains is a function; what a value needs *)
(*    to be in one (observations, distinct values) stands for all gates.   *)
(*  - A file is the set of what it holds: empty if it is absent. A digest  *)
(*    is what it is the digest of. A state file that cannot be read is as  *)
(*    good as absent, an artifact that does not verify too.                *)
(*  - A write that fails may have taken place all the same (its directory  *)
(*    could not be synced), and nobody knows.                              *)
(*  - Files are damaged while the process is down: while it is up it reads *)
(*    none of them, so that is the same as later.                          *)
(*                                                                         *)
(* Left out, and why                                                       *)
(*  - A candidate that cannot be built: as if its artifact could not be    *)
(*    written.                                                             *)
(*  - The throttle of publish: a Build that comes later.                   *)
(*  - Artifacts that no runtime file names and nobody is about to name:    *)
(*    nothing depends on them.                                             *)
(*  - A window of another size than before: as Truncate.                   *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Values,      \* what a record may tell
    Window,      \* how many records are kept
    Policies,    \* configurations
    Least,       \* policy -> the observations that a domain needs
    Widest,      \* policy -> the values that a domain may have
    Nobodys,     \* the policy of what nobody wrote
    Counted,     \* the counters that are looked at
    Most         \* where a counter stays; 2^64-1 in the code

Names == {"generations_published", "semantic_noops", "publication_failures", "checkpoint_failures",
          "recovery_replays", "recovery_replay_mismatches"}

ASSUME /\ Window \in Nat \ {0} /\ Most \in Nat \ {0}
       /\ Nobodys \notin Policies
       /\ Least \in [Policies -> Nat] /\ Widest \in [Policies -> Nat]
       /\ Counted \subseteq Names

VARIABLES
    state,       \* the state file: records, label, policy, whether they are complete, counters
    runtime,     \* the runtime file: the evidence whose domains it has, or garbage
    artifacts,   \* the artifacts that verify, of those that are named
    policy,      \* today's
    pc,          \* the step that the coordinator takes next
    window,      \* its records, oldest first
    dirty,       \* memory may differ from the files
    current,     \* the generation it takes for published
    served,      \* the generation that may be probed
    renewal,     \* the runtime file is to be written anew, whatever a build comes to
    build,       \* what the publication under way has come to
    basis,       \* the records that what is served was last compared with
    counters

vars == <<state, runtime, artifacts, policy, pc, window, dirty, current, served, renewal, build, basis, counters>>
files  == <<state, runtime, artifacts>>
memory == <<window, dirty, current, served, renewal, build, basis, counters>>

-----------------------------------------------------------------------------
(* From records to domains.                                                *)

Evidence(records, p) ==
    [counts |-> [v \in Values |-> Cardinality({i \in DOMAIN records : records[i] = v})], policy |-> p]

Observations(e) ==
    LET sum[vs \in SUBSET Values] == IF vs = {} THEN 0 ELSE LET v == CHOOSE v \in vs : TRUE
                                                             IN e.counts[v] + sum[vs \ {v}]
    IN sum[Values]

Domain(e) ==
    LET seen == {v \in Values : e.counts[v] > 0}
    IN IF Observations(e) >= Least[e.policy] /\ Cardinality(seen) <= Widest[e.policy] THEN seen ELSE {}

Candidate == Evidence(window, policy)
Garbage   == Evidence(<<>>, Nobodys)

\* The solving semantics of no or one generation.
Domains(generation) == UNION {Domain(e) : e \in generation}
SameDomains(generation) == \E e \in generation : Domain(e) = Domain(Candidate)

IsWindow(w)     == w \in Seq(Values) /\ Len(w) <= Window
IsEvidence(e)   == DOMAIN e = {"counts", "policy"} /\ e.counts \in [Values -> 0..Window] /\ e.policy \in Policies
IsCount(c)      == c \in [Counted -> 0..Most]
AtMostOne(S)    == Cardinality(S) <= 1
IsGeneration(S) == AtMostOne(S) /\ \A e \in S : IsEvidence(e)

Recovering == {"load", "verify", "replay"}
Publishing == {"artifact", "runtime", "state", "switch"}

StateType     == /\ AtMostOne(state)
                 /\ \A s \in state : /\ DOMAIN s = {"records", "label", "policy", "complete", "counters"}
                                     /\ IsWindow(s.records) /\ IsGeneration(s.label) /\ s.policy \in Policies
                                     /\ s.complete \in BOOLEAN /\ IsCount(s.counters)
RuntimeType   == AtMostOne(runtime) /\ (runtime = {Garbage} \/ IsGeneration(runtime))
ArtifactsType == artifacts \subseteq runtime \cup (IF pc = "runtime" THEN {Candidate} ELSE {})
PolicyType    == policy \in Policies
PcType        == pc \in {"down", "idle"} \cup Recovering \cup Publishing
WindowType    == IsWindow(window)
DirtyType     == dirty \in BOOLEAN
CurrentType   == IsGeneration(current)
ServedType    == IsGeneration(served)
RenewalType   == renewal \in BOOLEAN
BuildType     == /\ build \in {"none", "nothing", "same", "new", "unsaved", "lost"}
                 /\ (build # "none") <=> (pc \in Publishing)
BasisType     == AtMostOne(basis) /\ \A w \in basis : IsWindow(w)
CountersType  == IsCount(counters)

\* PROFILE-0: every variable has its type.
TypeOK == /\ StateType /\ RuntimeType /\ ArtifactsType /\ PolicyType /\ PcType /\ WindowType /\ DirtyType
          /\ CurrentType /\ ServedType /\ RenewalType /\ BuildType /\ BasisType /\ CountersType

\* A process that has not begun, or has ended, knows nothing.
Forgotten == /\ window' = <<>> /\ dirty' = FALSE /\ current' = {} /\ served' = {} /\ renewal' = FALSE
             /\ build' = "none" /\ basis' = {} /\ counters' = [n \in Counted |-> 0]

Init == /\ state = {} /\ runtime = {} /\ artifacts = {}
        /\ policy \in Policies
        /\ pc = "down"
        /\ window = <<>> /\ dirty = FALSE /\ current = {} /\ served = {} /\ renewal = FALSE
        /\ build = "none" /\ basis = {} /\ counters = [n \in Counted |-> 0]

Bumped(names) == [n \in Counted |-> IF n \in names /\ counters[n] < Most THEN counters[n] + 1 ELSE counters[n]]

-----------------------------------------------------------------------------
(* System: recovery. Nothing is written.                                   *)

Restart ==
    /\ pc = "down"
    /\ pc' = "load"
    /\ UNCHANGED <<files, policy, memory>>

LoadState(outcome) ==
    /\ pc = "load"
    /\ outcome = IF state = {} THEN "absent"
                 ELSE IF \A s \in state : s.complete /\ s.policy = policy THEN "loaded" ELSE "damaged"
    /\ \/ state = {} /\ UNCHANGED <<window, counters>>
       \/ \E s \in state : window' = s.records /\ counters' = s.counters
    /\ dirty' = (outcome = "damaged")
    /\ pc' = "verify"
    /\ UNCHANGED <<files, policy, current, served, renewal, build, basis>>

\* The runtime file, if it is what its artifact makes, and that is what it says it is.
Verified == IF runtime \subseteq artifacts THEN runtime ELSE {}
Named    == UNION {s.label : s \in state}

VerifyRuntime(outcome) ==
    /\ pc = "verify"
    /\ outcome = IF runtime = {} THEN "absent" ELSE IF Verified # {} THEN "verified" ELSE "refused"
    /\ current' = Verified
    /\ renewal' = (outcome = "refused" \/ \E e \in Verified : e.policy # policy)
    /\ dirty' = (dirty \/ Named # Verified \/ renewal' \/ (window # <<>> /\ Verified = {}))
    /\ pc' = IF state # {} /\ Verified # {} THEN "replay" ELSE "idle"
    /\ UNCHANGED <<files, policy, window, served, build, basis, counters>>

Replay(outcome) ==
    /\ pc = "replay"
    /\ outcome = IF SameDomains(current) THEN "equal" ELSE "different"
    /\ dirty' = (dirty \/ outcome = "different")
    /\ served' = IF dirty' THEN {} ELSE current
    /\ basis' = IF dirty' THEN {} ELSE {window}
    /\ counters' = Bumped({"recovery_replays"} \cup
                          IF outcome = "different" THEN {"recovery_replay_mismatches"} ELSE {})
    /\ pc' = "idle"
    /\ UNCHANGED <<files, policy, window, current, renewal, build>>

-----------------------------------------------------------------------------
(* System: publishing.                                                     *)

Observe(v) ==
    /\ pc = "idle"
    /\ LET longer == Append(window, v)
       IN window' = IF Len(longer) > Window THEN Tail(longer) ELSE longer
    /\ dirty' = TRUE
    /\ UNCHANGED <<files, policy, pc, current, served, renewal, build, basis, counters>>

Build(outcome) ==
    /\ pc = "idle" /\ dirty
    /\ outcome = IF renewal THEN "new"
                 ELSE IF current = {} /\ Domain(Candidate) = {} THEN "nothing"
                 ELSE IF SameDomains(current) THEN "same" ELSE "new"
    /\ build' = outcome
    /\ served' = IF outcome = "same" THEN current ELSE {}
    /\ basis' = {window}
    /\ pc' = IF outcome = "new" THEN "artifact" ELSE "state"
    /\ UNCHANGED <<files, policy, window, dirty, current, renewal, counters>>

WriteArtifact ==
    /\ pc = "artifact"
    /\ artifacts' = artifacts \cup {Candidate}
    /\ pc' = "runtime"
    /\ UNCHANGED <<state, runtime, policy, memory>>

WriteRuntime ==
    /\ pc = "runtime"
    /\ runtime' = {Candidate}
    /\ artifacts' = artifacts \cap runtime'
    /\ counters' = Bumped({"generations_published"})
    /\ pc' = "state"
    /\ UNCHANGED <<state, policy, window, dirty, current, served, renewal, build, basis>>

\* What is written counts the no-op that it ends.
Checkpoint ==
    {[records |-> window, label |-> IF build = "new" THEN {Candidate} ELSE current, policy |-> policy, complete |-> TRUE,
      counters |-> Bumped(IF build = "same" THEN {"semantic_noops"} ELSE {})]}

WriteState ==
    /\ pc = "state"
    /\ state' = Checkpoint
    /\ dirty' = (dirty /\ build \notin {"nothing", "same"})
    /\ counters' = Bumped(IF build = "same" THEN {"semantic_noops"} ELSE {})
    /\ pc' = IF build = "new" THEN "switch" ELSE "idle"
    /\ build' = IF build = "new" THEN "new" ELSE "none"
    /\ UNCHANGED <<runtime, artifacts, policy, window, current, served, renewal, basis>>

Switch ==
    /\ pc = "switch"
    /\ current' = {Candidate}
    /\ served' = {Candidate}
    /\ renewal' = FALSE
    /\ dirty' = (build = "unsaved")
    /\ pc' = "idle"
    /\ build' = "none"
    /\ UNCHANGED <<files, policy, window, basis, counters>>

\* What workers may probe now; they ask at any time.
Serve(outcome) ==
    /\ pc \in {"idle"} \cup Publishing
    /\ outcome = IF served = {} THEN "nothing" ELSE "served"
    /\ UNCHANGED vars

\* What a query with these solutions is answered, if its operand is tried in what is served first (F301): a model under
\* the domain is a model, and that there is none under it says nothing.
Probe(solutions, domains)  == IF solutions \cap domains # {} THEN "sat" ELSE "unsat"
Answer(solutions, domains) == IF Probe(solutions, domains) = "sat" THEN "sat" ELSE Probe(solutions, Values)

System ==
    \/ Restart \/ WriteArtifact \/ WriteRuntime \/ WriteState \/ Switch
    \/ \E o \in {"absent", "loaded", "damaged"} : LoadState(o)
    \/ \E o \in {"absent", "verified", "refused"} : VerifyRuntime(o)
    \/ \E o \in {"equal", "different"}          : Replay(o)
    \/ \E o \in {"nothing", "same", "new"}      : Build(o)
    \/ \E o \in {"nothing", "served"}           : Serve(o)
    \/ \E v \in Values                          : Observe(v)

-----------------------------------------------------------------------------
(* Environment: what fails, and what happens to files while nobody is up.  *)

\* The write raises; it may have taken place.
FailWrite(file, landed) ==
    /\ pc = file
    /\ UNCHANGED <<policy, window, dirty, current, served, basis>>
    /\ \/ /\ file = "artifact"
          /\ artifacts' = (artifacts \cup (IF landed THEN {Candidate} ELSE {})) \cap runtime
          /\ counters' = Bumped({"publication_failures"})
          /\ build' = "lost" /\ pc' = "state"
          /\ UNCHANGED <<state, runtime, renewal>>
       \/ /\ file = "runtime"
          /\ runtime' = IF landed THEN {Candidate} ELSE runtime
          /\ artifacts' = artifacts \cap runtime'
          /\ counters' = Bumped({"publication_failures"})
          /\ renewal' = TRUE
          /\ build' = "lost" /\ pc' = "state"
          /\ UNCHANGED state
       \/ /\ file = "state"
          /\ state' = IF landed THEN Checkpoint ELSE state
          /\ counters' = Bumped({"checkpoint_failures"})
          /\ build' = IF build = "new" THEN "unsaved" ELSE "none"
          /\ pc' = IF build = "new" THEN "switch" ELSE "idle"
          /\ UNCHANGED <<runtime, artifacts, renewal>>

\* SIGKILL at any boundary.
Crash ==
    /\ pc # "down"
    /\ pc' = "down"
    /\ Forgotten
    /\ artifacts' = artifacts \cap runtime
    /\ UNCHANGED <<state, runtime, policy>>

\* Other records under an unchanged label (F305 section 2.1).
Drift(records) ==
    /\ pc = "down"
    /\ \E s \in state : s.records # records /\ state' = {[s EXCEPT !.records = records]}
    /\ UNCHANGED <<runtime, artifacts, policy, pc, memory>>

\* The oldest record is lost, and the file says so.
Truncate ==
    /\ pc = "down"
    /\ \E s \in state : s.records # <<>> /\ state' = {[s EXCEPT !.records = Tail(s.records), !.complete = FALSE]}
    /\ UNCHANGED <<runtime, artifacts, policy, pc, memory>>

ChangePolicy(p) ==
    /\ pc = "down" /\ p # policy
    /\ policy' = p
    /\ UNCHANGED <<files, pc, memory>>

\* A file is not what it was, or gone; only of a runtime file that is not the same.
Corrupt(file, left) ==
    /\ pc = "down"
    /\ \/ file = "state"    /\ state # {}     /\ state' = {}     /\ UNCHANGED <<runtime, artifacts>>
       \/ file = "artifact" /\ artifacts # {} /\ artifacts' = {} /\ UNCHANGED <<state, runtime>>
       \/ /\ file = "runtime" /\ runtime # left
          /\ runtime # {} /\ runtime' = left /\ artifacts' = {} /\ UNCHANGED state
    /\ UNCHANGED <<policy, pc, memory>>

Files == {"artifact", "runtime", "state"}

WindowsOf(values) == UNION {[1..n -> values] : n \in 0..Window}

Environment ==
    \/ Crash \/ Truncate
    \/ \E f \in Files, landed \in BOOLEAN : FailWrite(f, landed)
    \/ \E f \in Files, left \in {{}, {Garbage}} : Corrupt(f, left)
    \/ \E records \in WindowsOf(Values) : Drift(records)
    \/ \E p \in Policies : ChangePolicy(p)

Next == System \/ Environment

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* Fairness, per action. None is asked of the environment, nor of Observe  *)
(* and Serve.                                                              *)

\* A service that died is started again.
FairRestart  == WF_vars(Restart)
\* The constructor has no step that waits for anybody.
FairLoad     == WF_vars(\E o \in {"absent", "loaded", "damaged"} : LoadState(o))
FairVerify   == WF_vars(\E o \in {"absent", "verified", "refused"} : VerifyRuntime(o))
FairReplay   == WF_vars(\E o \in {"equal", "different"} : Replay(o))
\* The service publishes in every round of its loop.
FairBuild    == WF_vars(\E o \in {"nothing", "same", "new"} : Build(o))
\* publish goes on from step to step.
FairArtifact == WF_vars(WriteArtifact)
FairRuntime  == WF_vars(WriteRuntime)
FairState    == WF_vars(WriteState)
FairSwitch   == WF_vars(Switch)

Fairness == /\ FairRestart /\ FairLoad /\ FairVerify /\ FairReplay /\ FairBuild
            /\ FairArtifact /\ FairRuntime /\ FairState /\ FairSwitch

-----------------------------------------------------------------------------
(* Safety.                                                                 *)

\* PROFILE-1: what is served is what the records that were last looked at lead to.
ServedIsJustified == \A w \in basis : \A e \in served : Domain(e) = Domain(Evidence(w, policy))

\* PROFILE-2: what is served was built under today's policy.
ServedUnderPolicy == \A e \in served : e.policy = policy

\* PROFILE-3: memory that differs from the files is dirty.
DifferenceIsDirty ==
    pc = "idle" /\ ~dirty =>
        /\ runtime = current /\ runtime \subseteq artifacts
        /\ \/ state = {} /\ window = <<>> /\ current = {}
           \/ \E s \in state : s.records = window /\ s.label = current /\ s.policy = policy /\ s.complete

\* PROFILE-4: nothing is served before recovery has come out clean or the records were built anew.
NothingServedInDoubt == basis = {} => served = {}

\* PROFILE-5: whoever is idle and clean serves all that its records lead to.
CleanIsServed == pc = "idle" /\ ~dirty => served = current /\ Domains(served) = Domain(Candidate)

\* PROFILE-6: what is served was published, and its files are there and not in doubt.
ServedIsPublished == served # {} => served = current /\ ~renewal /\ served = runtime /\ runtime \subseteq artifacts

\* PROFILE-7: a runtime file is written after its artifact.
ArtifactFirst == [][pc # "down" /\ runtime' # runtime => runtime' \subseteq artifacts']_vars

\* PROFILE-8: a counter goes up by one at a time; a process begins with what the state file says.
CountersRise ==
    [][\A n \in Counted : \/ counters'[n] \in {counters[n], Bumped({n})[n]}
                          \/ pc = "load" /\ \A s \in state : counters'[n] = s.counters[n]
                          \/ pc' = "down"]_vars

\* PROFILE-9: no more mismatches are counted than replays.
MismatchesAreReplays ==
    {"recovery_replays", "recovery_replay_mismatches"} \subseteq Counted =>
        /\ counters["recovery_replay_mismatches"] <= counters["recovery_replays"]
        /\ \A s \in state : s.counters["recovery_replay_mismatches"] <= s.counters["recovery_replays"]

\* PROFILE-11: whatever is served, no answer changes; in particular, a probe never decides unsat.
ProbeDecidesNothing ==
    \A solutions \in SUBSET Values :
        Answer(solutions, Domains(served)) = IF solutions = {} THEN "unsat" ELSE "sat"

Safety == /\ TypeOK /\ ServedIsJustified /\ ServedUnderPolicy /\ DifferenceIsDirty /\ NothingServedInDoubt
          /\ CleanIsServed /\ ServedIsPublished /\ MismatchesAreReplays /\ ProbeDecidesNothing

-----------------------------------------------------------------------------
(* Liveness: once records, failures and damage have ended.                 *)

\* PROFILE-10: memory and files come to agree for good.
Settles == <>[](pc = "idle" /\ ~dirty)
=============================================================================
