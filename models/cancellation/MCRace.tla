------------------------------- MODULE MCRace -------------------------------
(* Bounds and test aids for Race: a label on every step, and a switch for  *)
(* each part of the environment.                                           *)
EXTENDS Race, TLC

CONSTANTS
    Faults,   \* which of "cancel", "close", "expire", "give up", "failed" and "no helper" may happen
    Findings  \* what engines may answer

VARIABLE act  \* the step that led here: its name and parameters

allVars == <<vars, act>>

\* The constants that a cfg cannot write itself. A model of one engine is checked by the other.
TwoPlan   == <<"s1", "s2">>
TwoChecks == [s \in {"s1", "s2"} |-> IF s = "s1" THEN "k1" ELSE "k2"]
TwoLanes  == <<{"s1"}, {"s2"}, {"k2"}, {"k1"}>>
OnePlan   == <<"s1">>
OneCheck  == [s \in {"s1"} |-> "none"]
OneLane   == <<{"s1"}, {}>>
\* Two engines of which nobody's model is checked: smaller, where that is not the point.
NoChecks  == [s \in {"s1", "s2"} |-> "none"]
BareLanes == <<{"s1"}, {"s2"}, {}, {}>>

MCInit == Init /\ act = [name |-> "Init"]

May(fault) == fault \in Faults
Label(n)         == act' = [name |-> n]
About(n, s)      == act' = [name |-> n, of |-> s]
Went(n, s, o)    == act' = [name |-> n, of |-> s, outcome |-> o]

MCRacing ==
    \/ \E o \in {"entered", "refused"} : Enter(o) /\ act' = [name |-> "Enter", outcome |-> o]
    \/ Tell("race") /\ About("Tell", "race")
    \/ CallOff /\ Label("CallOff")
    \/ Leave /\ Label("Leave")
    \/ \E s \in Solvers :
        \/ Submit(s) /\ About("Submit", s)
        \/ CancelSolver(s) /\ About("CancelSolver", s)
        \/ \E o \in {"cancelled", "running"} : CancelFuture(s, o) /\ Went("CancelFuture", s, o)
    \/ \E l \in Solvers \cup {"user", "closed"} : Hear(l) /\ About("Hear", l)

MCPart(s) ==
    \/ \E c \in {s, CheckOf[s]} \cap Calls :
        \/ \E o \in {"registered", "refused"} : Register(c, o) /\ Went("Register", c, o)
        \/ May("no helper") /\ Register(c, "no helper") /\ Went("Register", c, "no helper")
        \/ \E o \in Reasons \cup {"answered"} : Settle(c, o) /\ Went("Settle", c, o)
    \/ Report(s) /\ About("Report", s)

MCOthers ==
    \/ May("cancel") /\ Cancel /\ Label("Cancel")
    \/ May("close") /\ Shut /\ Label("Shut")
    \/ Tell("closer") /\ About("Tell", "closer")
    \/ \E i \in 1..Len(Lanes) : Close(i) /\ act' = [name |-> "Close", lane |-> i]

MCEnvironment ==
    \/ \E c \in Calls, f \in Findings : Reply(c, f) /\ act' = [name |-> "Reply", of |-> c, finding |-> f]
    \/ May("failed") /\ \E c \in Calls : Reply(c, "failed") /\ About("Crash", c)
    \/ FreeThread /\ Label("FreeThread")
    \/ May("expire") /\ Expire /\ Label("Expire")
    \/ Delay /\ Label("Delay")
    \/ May("give up") /\ GiveUp /\ Label("GiveUp")

MCNext == MCRacing \/ (\E s \in Solvers : MCPart(s)) \/ MCOthers \/ MCEnvironment

\* For safety runs and for the graphs.
MCSpec == MCInit /\ [][MCNext]_allVars

\* Behaviour does not depend on the label, so safety runs may forget it.
Unlabelled == vars

\* The labelled steps are steps of the pure module.
Refines == [][Next]_vars

\* For liveness runs: no labels, so the graph is the smallest that has the behaviours.
LiveNext ==
    /\ \/ Racing \/ (\E s \in Solvers : Part(s))
       \/ May("cancel") /\ Cancel
       \/ May("close") /\ Shut
       \/ Tell("closer") \/ (\E i \in 1..Len(Lanes) : Close(i))
       \/ \E c \in Calls, f \in Findings : Reply(c, f)
       \/ FreeThread \/ Expire \/ Delay \/ GiveUp
    /\ act' = act
LiveBase == MCInit /\ [][LiveNext]_allVars
LiveSpec == LiveBase /\ Fairness

\* The race waits for no part, nor for the closer.
AloneSpec == LiveBase /\ FairRace /\ FairDeadline /\ FairPatience

\* Without one conjunct of the fairness each.
UnfairRace     == LiveBase /\ FairDeadline /\ FairPatience
UnfairDeadline == LiveBase /\ FairRace /\ FairPatience
UnfairPatience == LiveBase /\ FairRace /\ FairDeadline
UnfairParts    == LiveBase /\ FairRace /\ FairClosing /\ FairDeadline /\ FairPatience
UnfairClosing  == LiveBase /\ FairRace /\ FairParts /\ FairDeadline /\ FairPatience

-----------------------------------------------------------------------------
(* Non-properties: tempting, and false.                                    *)

\* A race that was cancelled may still have an answer: it was there before the letter was read.
CancelledIsUnknown == race = "done" /\ why \in {"user", "closed"} => answer = "unknown"
\* A loser that the race did not wait for may still be on its way out.
ReturnedIsStill == race = "done" => \A c \in Calls : stage[c] \in {"idle", "done"}
\* Time does not end a race that has an answer to read.
LateIsUnknown == race = "done" /\ late => answer \notin {"sat", "unsat"}

(* Witnesses: each hazard that a property speaks of is reached.            *)
QueuedIsCancelled  == ~ (act.name = "CancelFuture" /\ act.outcome = "cancelled")
RegistersTooLate   == ~ (act.name = "Register" /\ over)
LoserHadAnswered   == ~ (\E s \in Solvers : race = "settle" /\ end[s] \in Replies /\ s \notin known)
WrongModel         == ~ (\E s \in known : end[s] = "sat" /\ end[CheckOf[s]] = "unsat")
CheckIsCancelled   == ~ (\E k \in Checks : end[k] = "lost-race")
Disagreement       == ~ (race = "done" /\ \E s, t \in known : end[s] = "sat" /\ end[t] = "unsat")
GivenUp            == ~ (race = "done" /\ ~patience)
Unheeded           == ~ (\E s \in Solvers : record[s] = "unheard")
FoundCancelled     == ~ (act.name = "Tell" /\ act.of = "race")
CloseMeetsStraggler == ~ (closer = "left")
ClosedRefuses      == ~ (act.name = "Register" /\ act.outcome = "refused")
RacesRefused       == ~ (answer = "refused")
NoHelperRaised     == ~ (answer = "raised")
JoinsLate          == ~ (act.name = "Delay")
=============================================================================
