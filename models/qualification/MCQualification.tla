-------------------------- MODULE MCQualification --------------------------
(* Bounds and test aids for Qualification: a label on every step, and a    *)
(* switch for each part of the environment.                                *)
EXTENDS Qualification, TLC

CONSTANTS
    Begin,     \* where a run begins: "startup", "renewal" with every rank at work, or "identity" behind all rounds
    Renewals,  \* how many the root begins
    Sharing,   \* the file systems there may be: subset of BOOLEAN
    Types,     \* the types of generation that a rank may be given
    Calmly,    \* an exception hits a rank only while the others wait, which tells apart what others can see of it
    Faults     \* which of "ordinary", "control", "late", "alone", "stray", "garbled", "file", "intruder", "swap", "inputs"
               \* and "accounting" may happen

VARIABLE act   \* the step that led here: its name and parameters

allVars == <<vars, act>>

\* The constants that a cfg cannot write itself.
OwnHosts  == [r \in Ranks |-> r]
TwoHosts  == [r \in Ranks |-> IF r = 0 THEN 0 ELSE 1]
OneHost   == [r \in Ranks |-> 0]

\* Every rank at the same step of the same phase; outside of a run, with the proof of a startup behind it.
Together(step, i, open) ==
    LET proved == i = 0
    IN /\ pc = [r \in Ranks |-> step] /\ stage = [r \in Ranks |-> i]
       /\ heard = [r \in Ranks |-> "none"] /\ sound = [r \in Ranks |-> TRUE]
       /\ record = [r \in Ranks |-> "none"] /\ reply = [r \in Peers |-> "none"]
       /\ asked = {} /\ stops = {}
       /\ kept = [r \in Ranks |-> open] /\ locks = {} /\ leaf = IF open = 0 THEN "none" ELSE "real"
       /\ outside = FALSE /\ shared = TRUE /\ given = [r \in Ranks |-> "int"]
       /\ result = [r \in Ranks |-> IF proved THEN "verified" ELSE "none"]
       /\ proof = [r \in Ranks |-> IF proved THEN Rounds ELSE 0]
       /\ stamp = [r \in Ranks |-> IF proved THEN StartAt ELSE 0]
       /\ sworn = [r \in Ranks |-> IF proved THEN StartAt + 1 ELSE 0]
       /\ generation = [r \in Ranks |-> StartAt] /\ flight = [r \in Ranks |-> 0]
       /\ attempts = [r \in Ranks |-> 0] /\ successes = [r \in Ranks |-> 0] /\ failures = [r \in Ranks |-> 0]
       /\ admits = IF proved THEN Ranks ELSE {}
       /\ fatal = [r \in Ranks |-> "none"]
       /\ met = [r \in Ranks |-> "none"] /\ code = 0

MCInit == /\ CASE Begin = "startup"  -> Init
               [] Begin = "renewal"  -> Together("work", 0, 0)
               [] Begin = "identity" -> Together("act", Commit - 2, 2)
          /\ shared \in Sharing
          /\ \A r, s \in Ranks : given[r] \in Types /\ given[r] = given[s]
          /\ act = [name |-> "Init"]

May(fault)       == fault \in Faults
Label(n, r)      == act' = [name |-> n, by |-> r]
Went(n, r, o)    == act' = [name |-> n, by |-> r, outcome |-> o]
In(n, r)         == act' = [name |-> n, by |-> r, phase |-> Phase(stage[r]), round |-> Line[stage[r]].round]
InWent(n, r, o)  == act' = [name |-> n, by |-> r, phase |-> Phase(stage[r]), round |-> Line[stage[r]].round,
                            outcome |-> o]
RoundWent(n, r, o)  == act' = [name |-> n, by |-> r, round |-> Line[stage[r]].round, outcome |-> o]
Moment(n, r, a, o) == act' = [name |-> n, by |-> r, at |-> a, outcome |-> o]
Observing(r)     == IF result[r] = "none" THEN "startup" ELSE "renewal"

Struckable(r)    == Calmly => \A s \in Ranks \ {r} : pc[s] \in {"observe", "wait", "leaving", "work", "unwound"}

\* A wait lasts until its deadline if somebody is late, or only if whoever it is for has gone.
Left             == {"contain", "fall", "consume", "shutdown", "leaving", "abort", "unwound"}
Alone(r)         == \/ pc[r] = "leaving"
                    \/ r # Root /\ pc[Root] \in Left
                    \/ r = Root /\ \E p \in Peers : record[p] = "none" /\ pc[p] \in Left
Lasts(r)         == May("late") \/ (May("alone") /\ Alone(r))

MCProtocol(r) ==
    \/ \E o \in {"Observed"} \cup (IF May("inputs") THEN {"Failed"} ELSE {}) :
        Observe(r, o) /\ Moment("Observe", r, Observing(r), o)
    \/ Enter(r) /\ In("Enter", r)
    \/ \E o \in Outcomes : Exchange(r, o) /\ InWent("Exchange", r, o)
    \/ \E o \in Locking :
        \/ Hold(r, o) /\ RoundWent("Hold", r, o)
        \/ Contend(r, o) /\ RoundWent("Contend", r, o)
        \/ Reacquire(r, o) /\ RoundWent("Reacquire", r, o)
    \/ Release(r) /\ act' = [name |-> "Release", by |-> r, round |-> Line[stage[r]].round]
    \/ \E o \in {"Same", "Changed"} : CloseIdentity(r, o) /\ Went("CloseIdentity", r, o)
    \/ CommitTranscript(r) /\ Label("CommitTranscript", r)
    \/ Contain(r) /\ Label("Contain", r)

MCConsumer(r) ==
    \/ \E at \in Moments, o \in Verdicts :
        (o = "Accounting" => May("accounting")) /\ Consume(r, at, o) /\ Moment("Consume", r, at, o)
    \/ Shutdown(r) /\ Label("Shutdown", r)
    \/ \E c \in Codes : Abort(r, c) /\ act' = [name |-> "Abort", by |-> r, code |-> c]

\* The root begins so many renewals at most.
Turns(r) == Turn(r) /\ (r = Root /\ stops = {} => generation[r] < StartAt + Renewals)

MCEnvironment ==
    \/ \E r \in Present :
        \/ Turns(r) /\ Label("Turn", r)
        \/ Lasts(r) /\ Expire(r) /\ Label("Expire", r)
        \/ May("control") /\ Struckable(r) /\ RaiseControl(r) /\ Label("RaiseControl", r)
        \/ May("stray") /\ Stray(r) /\ Label("Stray", r)
        \/ May("garbled") /\ Garble(r) /\ Label("Garble", r)
        \/ May("file") /\ FailFile(r) /\ Label("FailFile", r)
        \/ May("ordinary") /\ Struckable(r) /\ \E n \in 0..Cardinality(Peers) :
            RaiseOrdinary(r, n) /\ act' = [name |-> "RaiseOrdinary", by |-> r, sent |-> n]
    \/ May("intruder") /\ Intrude /\ act' = [name |-> "Intrude"]
    \/ May("swap") /\ Swap /\ act' = [name |-> "Swap"]

MCNext == (\E r \in Present : MCProtocol(r) \/ MCConsumer(r)) \/ MCEnvironment

\* For safety runs and for the graph.
MCSpec == MCInit /\ [][MCNext]_allVars

\* Behaviour does not depend on the label, so safety runs may forget it.
Unlabelled == vars

\* The labelled steps are steps of the pure module.
Refines == [][Next]_vars

\* For liveness runs: no labels, so the graph is the smallest that has the behaviours.
LiveEnvironment ==
    \E r \in Present :
        \/ Turns(r)
        \/ Lasts(r) /\ Expire(r)
        \/ May("control") /\ Struckable(r) /\ RaiseControl(r)
        \/ May("garbled") /\ Garble(r)
        \/ May("file") /\ FailFile(r)
        \/ May("ordinary") /\ Struckable(r) /\ \E n \in 0..Cardinality(Peers) : RaiseOrdinary(r, n)
LiveConsumer(r) ==
    \/ Shutdown(r)
    \/ \E at \in Moments, o \in Verdicts : (o = "Accounting" => May("accounting")) /\ Consume(r, at, o)
    \/ \E c \in Codes : Abort(r, c)
LiveNext == ((\E r \in Present : Protocol(r) \/ LiveConsumer(r)) \/ LiveEnvironment) /\ act' = act
LiveBase == MCInit /\ [][LiveNext]_allVars
LiveSpec == LiveBase /\ Fairness

\* Without one conjunct of the fairness each.
UnfairObserve  == LiveBase /\ FairEnter /\ FairExchange /\ FairAct /\ FairCommit /\ FairContain /\ FairConsume /\ FairShutdown /\ FairAbort /\ FairTime
UnfairEnter    == LiveBase /\ FairObserve /\ FairExchange /\ FairAct /\ FairCommit /\ FairContain /\ FairConsume /\ FairShutdown /\ FairAbort /\ FairTime
UnfairExchange == LiveBase /\ FairObserve /\ FairEnter /\ FairAct /\ FairCommit /\ FairContain /\ FairConsume /\ FairShutdown /\ FairAbort /\ FairTime
UnfairAct      == LiveBase /\ FairObserve /\ FairEnter /\ FairExchange /\ FairCommit /\ FairContain /\ FairConsume /\ FairShutdown /\ FairAbort /\ FairTime
UnfairCommit   == LiveBase /\ FairObserve /\ FairEnter /\ FairExchange /\ FairAct /\ FairContain /\ FairConsume /\ FairShutdown /\ FairAbort /\ FairTime
UnfairContain  == LiveBase /\ FairObserve /\ FairEnter /\ FairExchange /\ FairAct /\ FairCommit /\ FairConsume /\ FairShutdown /\ FairAbort /\ FairTime
UnfairConsume  == LiveBase /\ FairObserve /\ FairEnter /\ FairExchange /\ FairAct /\ FairCommit /\ FairContain /\ FairShutdown /\ FairAbort /\ FairTime
UnfairShutdown == LiveBase /\ FairObserve /\ FairEnter /\ FairExchange /\ FairAct /\ FairCommit /\ FairContain /\ FairConsume /\ FairAbort /\ FairTime
UnfairAbort    == LiveBase /\ FairObserve /\ FairEnter /\ FairExchange /\ FairAct /\ FairCommit /\ FairContain /\ FairConsume /\ FairShutdown /\ FairTime
UnfairTime     == LiveBase /\ FairObserve /\ FairEnter /\ FairExchange /\ FairAct /\ FairCommit /\ FairContain /\ FairConsume /\ FairShutdown /\ FairAbort

-----------------------------------------------------------------------------
(* Non-properties: tempting, and false.                                    *)

\* The last answer may miss a rank; it then fails alone, and ends the job.
VerifiedEverywhere ==
    \A r, s \in Ranks : result[r] = "verified" /\ pc[s] = "consume" => result[s] = "verified"
\* A rank that was struck while it committed does not take the proof away from the others.
ContainedIsVerifiedNowhere == \A r, s \in Ranks : result[r] = "contained" => result[s] # "verified"
\* Who has not heard of a failure works on until it does.
NobodyAdmitsBesideAFailure == \A r, s \in Ranks : fatal[r] # "none" => s \notin admits
\* The grace ends before the last rank has stopped.
AbortComesLast == code = 70 => stops = Ranks

(* Witnesses: each hazard that a property speaks of is reached.            *)
AllAtWork          == ~ (admits = Ranks /\ \A r \in Ranks : pc[r] = "work")
OneOwner           == ~ (admits = {Root} /\ \A r \in Ranks : result[r] = "unproven")
LateAnswer         == ~ (\E p \in Peers : reply[p] = "bad" /\ pc[p] = "enter")
LockFileGone       == ~ (\E p \in Peers : act.name = "Enter" /\ act.by = p /\ act.phase = "open" /\ kept[p] = 2)
NotShared          == ~ (act.name = "Contend" /\ act.outcome = "Acquired")
HeldByAStranger    == ~ (act.name = "Hold" /\ act.outcome = "Blocked")
ReleaseNotSeen     == ~ (act.name = "Reacquire" /\ act.outcome = "Blocked")
Replaced           == ~ (act.name = "CloseIdentity" /\ act.outcome = "Changed")
GarbledIsRefused   == ~ (\E r \in Ranks : record[r] = "garbled" /\ heard[Root] = "Refused")
StruckWithTheLock  == ~ (act.name = "RaiseOrdinary" /\ \E r \in Ranks : pc[r] = "wait" /\ kept[r] = 3 /\ locks = {})
RefusedBooks       == ~ (\E r, s \in Ranks : fatal[r] = "accounting" /\ successes[s] > successes[r])
ToldToStop         == ~ (\E r \in Ranks : fatal[r] = "told")
StopInOrder        == ~ (code = 70 /\ stops = Ranks)
Unwound            == ~ (\E r \in Ranks : pc[r] = "unwound" /\ code = 70)
SecondRenewal      == ~ (\A r \in Ranks : successes[r] = 2)
NoIntegerIsRefused == ~ (\E r \in Ranks : given[r] = "bool" /\ result[r] = "failed" /\ stamp[r] = 0)
HalfAnswered       == ~ (act.name = "RaiseOrdinary" /\ act.sent > 0)
=============================================================================
