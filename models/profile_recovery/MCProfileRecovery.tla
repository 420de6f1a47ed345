------------------------- MODULE MCProfileRecovery --------------------------
(* Bounds and test aids for ProfileRecovery: a label on every step, a      *)
(* switch for each part of the environment, and a budget for it.           *)
EXTENDS ProfileRecovery, Integers, TLC

CONSTANTS
    Observed,    \* the values that runs are seen to take
    Hazards,     \* which of "Crash", "Drift", "Truncate", "ChangePolicy", "Corrupt" and "FailWrite" may happen
    Drifts,      \* the records that may be put in the place of others
    Landings,    \* whether a write that fails takes place all the same: a set of BOOLEAN
    Budget       \* how many records and hazards there may be; -1 for no limit

VARIABLES
    act,         \* the step that led here: its name and parameters
    budget       \* what is left; stays -1 when there is no limit

aids == <<act, budget>>
allVars == <<vars, aids>>

\* The constants that a cfg cannot write itself.
Unlimited == -1
OneEach   == [p \in Policies |-> 1]
TwoEach   == [p \in Policies |-> 2]
\* With a window of one, p and q admit the same and r admits nothing.
StricterR == [p \in Policies |-> IF p = "r" THEN 2 ELSE 1]
WiderQ    == [p \in Policies |-> IF p = "q" THEN 2 ELSE 1]
OnlyB     == {<<"b">>}

MCInit == Init /\ act = [name |-> "Init"] /\ budget = Budget

Free      == budget' = budget
Costly    == budget # 0 /\ budget' = IF budget > 0 THEN budget - 1 ELSE budget
May(what) == what \in Hazards
Label(n)   == act' = [name |-> n]
Went(n, o) == act' = [name |-> n, outcome |-> o]

MCSystem ==
    \/ Restart       /\ Free /\ Label("Restart")
    \/ WriteArtifact /\ Free /\ Label("WriteArtifact")
    \/ WriteRuntime  /\ Free /\ Label("WriteRuntime")
    \/ WriteState    /\ Free /\ Label("WriteState")
    \/ Switch        /\ Free /\ Label("Switch")
    \/ \E o \in {"absent", "loaded", "damaged"} : LoadState(o)     /\ Free /\ Went("LoadState", o)
    \/ \E o \in {"absent", "verified", "refused"} : VerifyRuntime(o) /\ Free /\ Went("VerifyRuntime", o)
    \/ \E o \in {"equal", "different"}          : Replay(o)        /\ Free /\ Went("Replay", o)
    \/ \E o \in {"nothing", "same", "new"}      : Build(o)         /\ Free /\ Went("Build", o)
    \/ \E o \in {"nothing", "served"}           : Serve(o)         /\ Free /\ Went("Serve", o)
    \/ \E v \in Observed : Observe(v) /\ Costly /\ act' = [name |-> "Observe", record |-> v]

MCEnvironment ==
    /\ Costly
    /\ \/ May("Crash")    /\ Crash    /\ Label("Crash")
       \/ May("Truncate") /\ Truncate /\ Label("Truncate")
       \/ May("Corrupt") /\ Corrupt("runtime", {}) /\ act' = [name |-> "Remove"]
       \/ \E f \in Files :
           \/ May("Corrupt") /\ Corrupt(f, {Garbage}) /\ act' = [name |-> "Corrupt", file |-> f]
           \/ \E landed \in Landings :
               May("FailWrite") /\ FailWrite(f, landed) /\ act' = [name |-> "FailWrite", file |-> f, landed |-> landed]
       \/ \E records \in Drifts : May("Drift") /\ Drift(records) /\ act' = [name |-> "Drift", records |-> records]
       \/ \E p \in Policies : May("ChangePolicy") /\ ChangePolicy(p) /\ act' = [name |-> "ChangePolicy", policy |-> p]

MCNext == MCSystem \/ MCEnvironment

\* For safety runs and for the graphs.
MCSpec == MCInit /\ [][MCNext]_allVars

\* Behaviour does not depend on the label, so safety runs may forget it.
Unlabelled == <<vars, budget>>

\* The labelled steps are steps of the pure module.
Refines == [][Next]_vars

\* For liveness runs: no labels, so the graph is the smallest that has the behaviours.
LiveNext ==
    /\ act' = act
    /\ \/ /\ Free
          /\ \/ Restart \/ WriteArtifact \/ WriteRuntime \/ WriteState \/ Switch
             \/ \E o \in {"absent", "loaded", "damaged"}   : LoadState(o)
             \/ \E o \in {"absent", "verified", "refused"} : VerifyRuntime(o)
             \/ \E o \in {"equal", "different"}            : Replay(o)
             \/ \E o \in {"nothing", "same", "new"}        : Build(o)
       \/ /\ Costly
          /\ \/ \E v \in Observed : Observe(v)
             \/ May("Crash") /\ Crash
             \/ May("Truncate") /\ Truncate
             \/ \E f \in Files : \/ May("Corrupt") /\ (Corrupt(f, {Garbage}) \/ Corrupt("runtime", {}))
                                 \/ \E landed \in Landings : May("FailWrite") /\ FailWrite(f, landed)
             \/ \E records \in Drifts : May("Drift") /\ Drift(records)
             \/ \E p \in Policies : May("ChangePolicy") /\ ChangePolicy(p)
LiveBase == MCInit /\ [][LiveNext]_allVars
LiveSpec == LiveBase /\ Fairness

\* Without one conjunct of the fairness each.
UnfairRestart  == LiveBase /\ FairLoad /\ FairVerify /\ FairReplay /\ FairBuild /\ FairArtifact /\ FairRuntime /\ FairState /\ FairSwitch
UnfairLoad     == LiveBase /\ FairRestart /\ FairVerify /\ FairReplay /\ FairBuild /\ FairArtifact /\ FairRuntime /\ FairState /\ FairSwitch
UnfairVerify   == LiveBase /\ FairRestart /\ FairLoad /\ FairReplay /\ FairBuild /\ FairArtifact /\ FairRuntime /\ FairState /\ FairSwitch
UnfairReplay   == LiveBase /\ FairRestart /\ FairLoad /\ FairVerify /\ FairBuild /\ FairArtifact /\ FairRuntime /\ FairState /\ FairSwitch
UnfairBuild    == LiveBase /\ FairRestart /\ FairLoad /\ FairVerify /\ FairReplay /\ FairArtifact /\ FairRuntime /\ FairState /\ FairSwitch
UnfairArtifact == LiveBase /\ FairRestart /\ FairLoad /\ FairVerify /\ FairReplay /\ FairBuild /\ FairRuntime /\ FairState /\ FairSwitch
UnfairRuntime  == LiveBase /\ FairRestart /\ FairLoad /\ FairVerify /\ FairReplay /\ FairBuild /\ FairArtifact /\ FairState /\ FairSwitch
UnfairState    == LiveBase /\ FairRestart /\ FairLoad /\ FairVerify /\ FairReplay /\ FairBuild /\ FairArtifact /\ FairRuntime /\ FairSwitch
UnfairSwitch   == LiveBase /\ FairRestart /\ FairLoad /\ FairVerify /\ FairReplay /\ FairBuild /\ FairArtifact /\ FairRuntime /\ FairState

-----------------------------------------------------------------------------
(* Non-properties: tempting, and false.                                    *)

\* What was confirmed goes on being served while new records wait for their build.
DirtyServesNothing == dirty => served = {}
\* Labels that agree, complete records and today's policy do not mean that the records support the runtime file.
LabelMeansSupport == \A s \in state : s.label # {} /\ s.label = runtime /\ s.complete => Domain(Evidence(s.records, s.policy)) = Domains(runtime)
\* After a failed publication the generation before stays current, but its records have changed.
CurrentIsServed == pc = "idle" /\ basis # {} => served = current
\* Three renames are not one transaction.
FilesAgree == pc = "down" /\ state # {} => Named = runtime

(* Witnesses: each hazard that a property speaks of is reached.            *)
ReplayDiffers     == ~ (act.name = "Replay" /\ act.outcome = "different")
EqualInDoubt      == ~ (act.name = "Replay" /\ act.outcome = "equal" /\ dirty)
BetweenRenames    == ~ (act.name = "VerifyRuntime" /\ act.outcome = "verified" /\ state # {} /\ Named # runtime)
LandedAndFailed   == ~ (act.name = "FailWrite" /\ act.file = "runtime" /\ act.landed /\ current # {} /\ runtime # current)
Withdrawn         == ~ (served # {} /\ Domains(served) = {})
OtherEvidence     == ~ (act.name = "Build" /\ act.outcome = "same" /\ Candidate \notin current)
SameUnderNew      == ~ (act.name = "Build" /\ act.outcome = "new" /\ renewal /\ SameDomains(current))
NothingToSay      == ~ (act.name = "Build" /\ act.outcome = "nothing")
RetriedCheckpoint == ~ (act.name = "WriteState" /\ build = "none" /\ counters["checkpoint_failures"] > 0 /\ ~dirty)
ArtifactRepaired  == ~ (act.name = "WriteArtifact" /\ current = {} /\ Candidate \in runtime)
=============================================================================
