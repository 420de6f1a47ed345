-------------------------- MODULE MCSpoolAdmission --------------------------
(* Bounds and test aids for SpoolAdmission: a label on every step, and a   *)
(* budget for faults.                                                      *)
EXTENDS SpoolAdmission, Integers, TLC

CONSTANTS
    Payload,     \* file -> the contents its producer may publish
    Faults,      \* how many faults and replacements may happen; -1 for no limit
    LockFiles    \* the kinds of lock file a run starts with

VARIABLES
    act,         \* the step that led here: its name and parameters
    budget       \* faults left; stays -1 when there is no limit

aids == <<act, budget>>
allVars == <<vars, aids>>

\* The constants that a cfg cannot write itself.
Unlimited    == -1
OneFile      == <<"a">>
TwoFiles     == <<"a", "b">>
ThreeFiles   == <<"a", "b", "c">>
GoodOrBad    == [f \in Files |-> Contents]
FirstMayBeBad == [f \in Files |-> IF f = Names[1] THEN Contents ELSE Good]

MCInit == /\ Init /\ lockfile \in LockFiles
          /\ act = [name |-> "Init"]
          /\ budget = Faults

Free     == budget' = budget
Costly   == /\ budget # 0
            /\ budget' = IF budget > 0 THEN budget - 1 ELSE budget
Step(c, n)      == act' = [name |-> n, c |-> c]
FileStep(c, f, n) == act' = [name |-> n, c |-> c, f |-> f]

MCSystem(c) ==
    \/ Acquire(c)    /\ Free /\ Step(c, "Acquire")
    \/ Busy(c)       /\ Free /\ Step(c, "Busy")
    \/ RefuseLock(c) /\ Free /\ Step(c, "RefuseLock")
    \/ List(c)       /\ Free /\ Step(c, "List")
    \/ Commit(c)     /\ Free /\ Step(c, "Commit")
    \/ Release(c)    /\ Free /\ Step(c, "Release")
    \/ \E f \in Files :
        \/ Open(c, f)         /\ Free /\ FileStep(c, f, "Open")
        \/ WriteSidecar(c, f) /\ Free /\ FileStep(c, f, "WriteSidecar")
        \/ \E o \in {"good", "bad", "unstable"} :
            Verify(c, f, o) /\ Free /\ act' = [name |-> "Verify", c |-> c, f |-> f, outcome |-> o]
        \/ \E o \in {"accepted", "rejected", "unstable"} :
            Move(c, f, o) /\ Free /\ act' = [name |-> "Move", c |-> c, f |-> f, outcome |-> o]

MCEnvironment ==
    \/ \E f \in Files : \E k \in Payload[f] :
        \/ Publish(f, k) /\ Free   /\ act' = [name |-> "Publish", f |-> f, k |-> k]
        \/ Replace(f, k) /\ Costly /\ act' = [name |-> "Replace", f |-> f, k |-> k]
    \/ \E c \in Consumers :
        \/ Crash(c)     /\ Costly /\ Step(c, "Crash")
        \/ FailStore(c) /\ Costly /\ Step(c, "FailStore")
        \/ FailMove(c)  /\ Costly /\ Step(c, "FailMove")

MCNext == (\E c \in Consumers : MCSystem(c)) \/ MCEnvironment

\* For safety runs and for the graph.
MCSpec == MCInit /\ [][MCNext]_allVars

\* Behaviour does not depend on the label, so safety runs may forget it.
Unlabelled == <<vars, budget>>

\* SPOOL-9: a busy scan and a refused lock change nothing.
UnservedChangesNothing == [][act'.name \in {"Busy", "RefuseLock"} => UNCHANGED vars]_allVars

\* The labelled steps are steps of the pure module.
Refines == [][Next]_vars

\* For liveness runs: no labels, so the graph is the smallest that has the behaviours.
Quiet == act' = act
LiveNext ==
    \/ \E c \in Consumers : System(c) /\ Free /\ Quiet
    \/ \E f \in Files : \E k \in Payload[f] : (Publish(f, k) /\ Free /\ Quiet) \/ (Replace(f, k) /\ Costly /\ Quiet)
    \/ \E c \in Consumers : Fault(c) /\ Costly /\ Quiet
LiveBase == MCInit /\ [][LiveNext]_allVars
LiveSpec == LiveBase /\ Fairness

\* Without one conjunct of the fairness each.
UnfairAcquire == LiveBase /\ FairList /\ FairOpen /\ FairVerify /\ FairSidecar /\ FairMove /\ FairCommit /\ FairRelease
UnfairList    == LiveBase /\ FairAcquire /\ FairOpen /\ FairVerify /\ FairSidecar /\ FairMove /\ FairCommit /\ FairRelease
UnfairOpen    == LiveBase /\ FairAcquire /\ FairList /\ FairVerify /\ FairSidecar /\ FairMove /\ FairCommit /\ FairRelease
UnfairVerify  == LiveBase /\ FairAcquire /\ FairList /\ FairOpen /\ FairSidecar /\ FairMove /\ FairCommit /\ FairRelease
UnfairSidecar == LiveBase /\ FairAcquire /\ FairList /\ FairOpen /\ FairVerify /\ FairMove /\ FairCommit /\ FairRelease
UnfairMove    == LiveBase /\ FairAcquire /\ FairList /\ FairOpen /\ FairVerify /\ FairSidecar /\ FairCommit /\ FairRelease
UnfairCommit  == LiveBase /\ FairAcquire /\ FairList /\ FairOpen /\ FairVerify /\ FairSidecar /\ FairMove /\ FairRelease
UnfairRelease == LiveBase /\ FairAcquire /\ FairList /\ FairOpen /\ FairVerify /\ FairSidecar /\ FairMove /\ FairCommit

-----------------------------------------------------------------------------
(* Non-properties: tempting, and false.                                    *)

\* A crash between commit and move leaves a stored query in incoming/.
StoredIsAccepted == \A k \in Good : rows[k] > 0 => \E f \in Files : content[f] = k /\ where[f] = {"accepted"}
\* A crash between sidecar and move leaves a sidecar without its file.
SidecarIsRejected == \A f \in sidecar : where[f] = {"rejected"}
\* A held lock does not mean that its holder makes progress.
HeldMeansListed == \A c \in Consumers : holder = c => todo[c] # <<>> \/ pc[c] = "list"

(* Witnesses: each hazard that a property speaks of is reached.            *)
ReplacedWhileRead   == ~ (act.name = "Verify" /\ act.outcome = "unstable")
ReplacedBeforeMove  == ~ (act.name = "Move" /\ act.outcome = "unstable")
ReplayedAfterCommit == ~ (act.name = "Commit" /\ \A i \in 1..Len(Names) : where[Names[i]] = {"incoming"}
                            /\ act.c # CHOOSE c \in Consumers : TRUE)
SameContentTwice    == ~ (\E f, g \in Files : f # g /\ where[f] = {"accepted"} /\ where[g] = {"accepted"}
                            /\ content[f] = content[g])
LeftoverSidecar     == ~ (\E f \in sidecar : where[f] = {"incoming"} /\ \A c \in Consumers : pc[c] = "idle")
BatchOfTwo          == ~ (\E c \in Consumers : pc[c] = "commit" /\ Cardinality(GoodIn(batch[c])) = 2)
=============================================================================
