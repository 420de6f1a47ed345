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
Label(n, c)          == act' = [name |-> n, consumer |-> c]
FileLabel(n, c, f)   == act' = [name |-> n, consumer |-> c, file |-> f]
GoodFiles(c)         == LET entries == SelectSeq(batch[c], LAMBDA e : e.content \in Good)
                        IN [i \in 1..Len(entries) |-> entries[i].file]

\* Labels carry the names and parameters of the actions in the code, and how a step went that may go several ways.
MCSystem(c) ==
    \/ Acquire(c)    /\ Free /\ act' = [name |-> "TryLock", consumer |-> c, outcome |-> "Acquire"]
    \/ Busy(c)       /\ Free /\ act' = [name |-> "TryLock", consumer |-> c, outcome |-> "Busy"]
    \/ RefuseLock(c) /\ Free /\ act' = [name |-> "TryLock", consumer |-> c, outcome |-> "RefuseLock"]
    \/ List(c)       /\ Free /\ Label("List", c)
    \/ Commit(c)     /\ Free /\ act' = [name |-> "Commit", consumer |-> c, files |-> GoodFiles(c)]
    \/ Release(c)    /\ Free /\ Label("Release", c)
    \/ \E f \in Files :
        \/ Open(c, f)         /\ Free /\ FileLabel("Open", c, f)
        \/ WriteSidecar(c, f) /\ Free /\ FileLabel("WriteSidecar", c, f)
        \/ \E o \in {"good", "bad", "unstable"} :
            Verify(c, f, o) /\ Free /\ act' = [name |-> "Verify", consumer |-> c, file |-> f, outcome |-> o]
        \/ \E o \in {"moved", "replaced"} :
            Move(c, f, o) /\ Free /\ act' = [name |-> "Move", consumer |-> c, file |-> f, outcome |-> o]

MCEnvironment ==
    \/ \E f \in Files : \E k \in Payload[f] :
        \/ Publish(f, k) /\ Free   /\ act' = [name |-> "Publish", file |-> f, content |-> k]
        \/ Replace(f, k) /\ Costly /\ act' = [name |-> "Replace", file |-> f, content |-> k]
    \/ \E c \in Consumers :
        \/ Crash(c)     /\ Costly /\ Label("Crash", c)
        \/ FailStore(c) /\ Costly /\ Label("FailStore", c)
        \/ FailMove(c)  /\ Costly /\ Label("FailMove", c)

MCNext == (\E c \in Consumers : MCSystem(c)) \/ MCEnvironment

\* For safety runs and for the graph.
MCSpec == MCInit /\ [][MCNext]_allVars

\* Behaviour does not depend on the label, so safety runs may forget it.
Unlabelled == <<vars, budget>>

\* SPOOL-9: a busy scan and a refused lock change nothing.
UnservedChangesNothing == [][act'.name = "TryLock" /\ act'.outcome # "Acquire" => UNCHANGED vars]_allVars

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
SidecarIsRejected == \A f \in Files : sidecar[f] # "none" => where[f] = {"rejected"}
\* A held lock does not mean that its holder makes progress.
HeldMeansListed == \A c \in Consumers : holder = c => todo[c] # <<>> \/ pc[c] = "list"

(* Witnesses: each hazard that a property speaks of is reached.            *)
ReplacedWhileRead   == ~ (act.name = "Verify" /\ act.outcome = "unstable")
ReplacedBeforeMove  == ~ (act.name = "Move" /\ act.outcome = "replaced")
ReplayedAfterCommit == ~ (\E c \in Consumers : pc[c] = "commit" /\ \E i \in GoodIn(batch[c]) : rows[batch[c][i].content] = 1)
SameContentTwice    == ~ (\E f, g \in Files : f # g /\ where[f] = {"accepted"} /\ where[g] = {"accepted"}
                            /\ content[f] = content[g])
LeftoverSidecar     == ~ (\E f \in Files : sidecar[f] = "fits" /\ where[f] = {"incoming"} /\ \A c \in Consumers : pc[c] = "idle")
BatchOfTwo          == ~ (\E c \in Consumers : pc[c] = "commit" /\ Cardinality(GoodIn(batch[c])) = 2)
=============================================================================
