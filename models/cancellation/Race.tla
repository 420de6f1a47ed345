-------------------------------- MODULE Race --------------------------------
(***************************************************************************)
(* One race of a portfolio: who is asked, whose answer counts, and what    *)
(* becomes of the others (F381, F467).                                     *)
(*                                                                         *)
(* The race runs on the thread that wants the answer and decides one       *)
(* letter at a time. Each engine's part is a future, run by a thread of    *)
(* the pool: it asks the engine's solver and, for sat, another engine's    *)
(* solver whether the model is right. A user cancels, a closer closes, at  *)
(* any time. The steps are those of Race, Portfolio and PersistentSolver.  *)
(*                                                                         *)
(* Decided here                                                            *)
(*  - A solver is what Cancellation says of it, and no more: who registers *)
(*    is told at once if the race is over; who is told before its Settle   *)
(*    ends cancelled and soon, whatever its helper does; who is not told   *)
(*    is answered, fails, or is late; whoever leaves has left nothing.     *)
(*    RaceView states it as properties of Cancellation. So the steps       *)
(*    between Register and Settle are one, and so are those from Settle to *)
(*    Unregister.                                                          *)
(*  - A future is queued while no thread of the pool is free: earlier      *)
(*    losers may hold some.                                                *)
(*  - A wait ends in the step that ends it.                                *)
(*                                                                         *)
(* Left out, and why                                                       *)
(*  - Several races at once: they meet in solvers, which Cancellation has. *)
(*  - A second opinion on a contested model, which takes a third engine;   *)
(*    confirmed unsat; who goes first.                                     *)
(*  - close giving up on a race after its grace.                           *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Plan,      \* sequence of the solvers, in the order in which they are asked
    CheckOf,   \* solver -> the call that checks its model, or NoCheck where no other engine can
    Lanes,     \* sequence of sets of calls: whom each lane serves, in the order in which they are closed
    Cpus,      \* so many solvers at once at most
    Hedged,    \* the next one joins after a delay, or when the one before was not enough
    Free,      \* how many threads of the pool are free at the start
    Busy,      \* how many more earlier losers hold
    NoCheck, Nobody

Solvers == {Plan[i] : i \in 1..Len(Plan)}
Checks  == {CheckOf[s] : s \in Solvers} \ {NoCheck}
Calls   == Solvers \cup Checks

ASSUME /\ Cardinality(Solvers) = Len(Plan) /\ Cpus > 0 /\ Hedged \in BOOLEAN
       /\ Solvers \cap Checks = {} /\ Calls = UNION {Lanes[i] : i \in 1..Len(Lanes)}

VARIABLES
    race,     \* the step that the race takes next; "go" and "settle" may be waits
    why,      \* why the race ended, once it has
    over,     \* its switch is set
    ripe,     \* whoever is next in the plan may join
    patience, \* the losers' time to report has not passed
    inbox,    \* letters: solvers whose part has ended, reasons to end
    known,    \* the solvers whose letter was read
    told,     \* the solvers that are still to be dismissed
    future,   \* solver -> the state of its part
    stage,    \* call -> the step that it takes next
    reason,   \* call -> why its event is set
    heard,    \* call -> what came of its exchange
    end,      \* call -> what it settled on: an answer or a failure, or the reason it was cancelled for
    id,       \* call -> the number in its attempt id
    idle,     \* how many threads of the pool wait for work
    busy,     \* how many earlier losers hold
    late,     \* the deadline has passed
    token,    \* the user has cancelled
    closer,   \* the step that the closer takes next
    closing,  \* how many lanes it has closed
    answer,   \* what the race returned
    winner,   \* whose answer that is
    record    \* solver -> what is recorded of its attempt

raceVars  == <<race, why, over, ripe, patience, inbox, known, told>>
callVars  == <<stage, reason, heard, end, id>>
poolVars  == <<future, idle, busy>>
closeVars == <<closer, closing>>
endVars   == <<answer, winner, record>>
vars == <<raceVars, callVars, poolVars, late, token, closeVars, endVars>>

Reasons  == {"lost-race", "user", "closed", "deadline"}
Replies  == {"sat", "unsat", "unknown"}
Failures == {"failed", "timeout", "no helper"}
Ends     == Replies \cup {"failed", "no helper", "refused"} \cup Reasons

\* RACE-0: every variable has its type.
TypeOK ==
    /\ race \in {"enter", "tell", "go", "call off", "future", "solver", "settle", "leave", "done"}
    /\ why \in Reasons \cup {"none"}
    /\ {over, ripe, patience, late, token} \subseteq BOOLEAN
    /\ \A i \in 1..Len(inbox) : inbox[i] \in Solvers \cup {"user", "closed"}
    /\ known \subseteq Solvers /\ told \subseteq Solvers
    /\ future \in [Solvers -> {"none", "queued", "running", "done", "cancelled"}]
    /\ stage \in [Calls -> {"idle", "register", "asked", "settle", "checking", "report", "done"}]
    /\ reason \in [Calls -> Reasons \cup {"none"}]
    /\ heard \in [Calls -> Replies \cup Failures \cup {"none"}]
    /\ end \in [Calls -> Ends \cup {"none"}]
    /\ id \in [Calls -> 0..Cardinality(Calls)]
    /\ idle \in 0..(Free + Busy) /\ busy \in 0..Busy
    /\ closer \in {"open", "tell", "await", "lane", "left", "pool", "done"} /\ closing \in 0..Len(Lanes)
    /\ answer \in {"none", "sat", "unsat", "unknown", "error", "raised", "refused"}
    /\ winner \in Solvers \cup {Nobody}
    /\ record \in [Solvers -> Replies \cup Reasons \cup {"none", "error", "unheard"}]

Init ==
    /\ race = "enter" /\ why = "none" /\ over = FALSE /\ ripe = TRUE /\ patience = TRUE
    /\ inbox = <<>> /\ known = {} /\ told = {}
    /\ future = [s \in Solvers |-> "none"]
    /\ stage = [c \in Calls |-> "idle"]
    /\ reason = [c \in Calls |-> "none"]
    /\ heard = [c \in Calls |-> "none"]
    /\ end = [c \in Calls |-> "none"]
    /\ id = [c \in Calls |-> 0]
    /\ idle = Free /\ busy = Busy
    /\ late = FALSE /\ token = FALSE
    /\ closer = "open" /\ closing = 0
    /\ answer = "none" /\ winner = Nobody
    /\ record = [s \in Solvers |-> "none"]

-----------------------------------------------------------------------------
(* Parts of steps.                                                         *)

First(some) == LET i == CHOOSE i \in 1..Len(Plan) : Plan[i] \in some /\ \A j \in 1..(i - 1) : Plan[j] \notin some
               IN Plan[i]

Waiting      == {s \in Solvers : future[s] = "none"}
\* Asked, and not heard of: what the race calls its running attempts.
Out(parts, read) == {s \in Solvers : parts[s] \in {"queued", "running", "done"}} \ read
Unheard      == Out(future, known)
CanStart     == Waiting # {} /\ Cardinality(Unheard) < Cpus
\* The race reads its inbox, or waits for a letter.
Reads        == race \in {"go", "settle"} /\ ~(race = "go" /\ CanStart /\ ripe)
Waits        == Reads /\ inbox = <<>>

\* Where the race stands once it has come to `step`, and why it ended if it has.
Onward(step, because, out, letters, starts, past, patient) ==
    LET stop == step = "go" /\ ~starts /\ (out = {} \/ (letters = <<>> /\ past))
        go   == CASE stop -> "call off"
                  [] step = "settle" /\ (out = {} \/ (letters = <<>> /\ ~patient)) -> "leave"
                  [] OTHER -> step
    IN /\ race' = go
       /\ why' = IF stop THEN (IF past THEN "deadline" ELSE "lost-race") ELSE because
       /\ inbox' = IF go = "leave" THEN <<>> ELSE letters

\* It may end the race: unsat, or sat with a model that another engine confirmed.
Accepted(s) == end[s] = "unsat" \/ (end[s] = "sat" /\ CheckOf[s] # NoCheck /\ end[CheckOf[s]] = "sat")

\* Events that are not set yet are set; whoever waits for a helper loses it, and waits no more.
Told(some, because, at, events, found) ==
    LET hit == {c \in some : at[c] \in {"asked", "settle"}}
    IN /\ reason' = [c \in Calls |-> IF c \in hit /\ events[c] = "none" THEN because ELSE events[c]]
       /\ heard'  = [c \in Calls |-> IF c \in hit /\ at[c] = "asked" THEN "failed" ELSE found[c]]
       /\ stage'  = [c \in Calls |-> IF c \in hit /\ at[c] = "asked" THEN "settle" ELSE at[c]]
Inform(some, because) == Told(some, because, stage, reason, heard)

\* A thread of the pool is free: it takes the first part that is queued, if there is one.
Queued == {s \in Solvers : future[s] = "queued"}
Taken(parts, at) ==
    IF Queued = {}
    THEN idle' = idle + 1 /\ future' = parts /\ stage' = at
    ELSE /\ idle' = idle
         /\ future' = [parts EXCEPT ![First(Queued)] = "running"]
         /\ stage' = [at EXCEPT ![First(Queued)] = "register"]

Registered(c, at) == at[c] \in {"asked", "settle"}
Closed(c) == \E i \in 1..closing : c \in Lanes[i]

\* Where the closer stands once so many lanes are closed.
Closing(count, at) ==
    CASE count > 0 /\ (\E c \in Lanes[count] : Registered(c, at)) -> "left"
      [] count < Len(Lanes) -> "lane"
      [] \E s \in Solvers : at[s] \notin {"idle", "done"} -> "pool"
      [] OTHER -> "done"

-----------------------------------------------------------------------------
(* The race.                                                               *)

Enter(outcome) ==
    /\ race = "enter"
    /\ outcome = IF closer = "open" THEN "entered" ELSE "refused"
    /\ race' = CASE outcome = "refused" -> "done" [] token -> "tell" [] OTHER -> "go"
    /\ answer' = IF outcome = "refused" THEN "refused" ELSE answer
    /\ UNCHANGED <<why, over, ripe, patience, inbox, known, told, callVars, poolVars, late, token, closeVars,
                   winner, record>>

\* Attempts are counted.
NextId == Cardinality(Solvers \ Waiting) + 1

Submit(s) ==
    /\ race = "go" /\ CanStart /\ ripe
    /\ s = First(Waiting)
    /\ LET runs == idle > 0
       IN /\ future' = [future EXCEPT ![s] = IF runs THEN "running" ELSE "queued"]
          /\ stage' = [stage EXCEPT ![s] = IF runs THEN "register" ELSE "idle"]
          /\ idle' = IF runs THEN idle - 1 ELSE idle
    /\ id' = [id EXCEPT ![s] = NextId]
    /\ ripe' = (~Hedged \/ Waiting = {s})
    /\ LET starts == Waiting # {s} /\ ripe' /\ Cardinality(Unheard) + 1 < Cpus
       IN Onward("go", why, Unheard \cup {s}, inbox, starts, late, patience)
    /\ UNCHANGED <<over, patience, known, told, reason, heard, end, busy, late, token, closeVars, endVars>>

Decided(read) == \E s \in read : Accepted(s)

Hear(letter) ==
    LET read == IF letter \in Solvers THEN known \cup {letter} ELSE known
        rest == Tail(inbox)
        stop == race = "go" /\ (letter \notin Solvers \/ Decided(read))
    IN /\ Reads /\ inbox # <<>> /\ letter = Head(inbox)
       /\ known' = read
       /\ ripe' = (ripe \/ race = "go")
       /\ IF stop
          THEN race' = "call off" /\ why' = (IF letter \in Solvers THEN "lost-race" ELSE letter) /\ inbox' = rest
          ELSE Onward(race, why, Out(future, read), rest, Waiting # {}, late, patience)
       /\ UNCHANGED <<over, patience, told, callVars, poolVars, late, token, closeVars, endVars>>

CallOff ==
    /\ race = "call off"
    /\ over' = TRUE
    /\ ripe' = TRUE
    /\ told' = Unheard
    /\ race' = IF Unheard = {} THEN "leave" ELSE "future"
    /\ inbox' = IF Unheard = {} THEN <<>> ELSE inbox
    /\ UNCHANGED <<why, patience, known, callVars, poolVars, late, token, closeVars, endVars>>

\* Behind the last loser the checks are told too, and then the losers are heard.
CancelFuture(s, outcome) ==
    /\ race = "future" /\ s = First(told)
    /\ outcome = IF future[s] = "queued" THEN "cancelled" ELSE "running"
    /\ IF outcome = "running"
       THEN race' = "solver" /\ UNCHANGED <<why, inbox, future, told, stage, reason, heard>>
       ELSE /\ future' = [future EXCEPT ![s] = "cancelled"]
            /\ told' = told \ {s}
            /\ IF told' # {} THEN race' = "future" /\ UNCHANGED <<why, inbox, stage, reason, heard>>
               ELSE /\ Inform(Checks, why)
                    /\ Onward("settle", why, Out(future', known), inbox, FALSE, late, patience)
    /\ UNCHANGED <<over, ripe, patience, known, end, id, idle, busy, late, token, closeVars, endVars>>

Dismissed(s) == {s}

CancelSolver(s) ==
    /\ race = "solver" /\ s = First(told)
    /\ told' = told \ {s}
    /\ IF told' # {} THEN race' = "future" /\ Inform(Dismissed(s), why) /\ UNCHANGED <<why, inbox>>
       ELSE /\ Inform(Dismissed(s) \cup Checks, why)
            /\ Onward("settle", why, Unheard, inbox, FALSE, late, patience)
    /\ UNCHANGED <<over, ripe, patience, known, end, id, poolVars, late, token, closeVars, endVars>>

\* What it comes to, of those who were heard.
Sats   == {s \in known : end[s] = "sat"}
Unsats == {s \in known : end[s] = "unsat"}
Troubled(s) == end[s] = "no helper" \/ (end[s] = "sat" /\ CheckOf[s] # NoCheck /\ end[CheckOf[s]] = "no helper")
Asked  == Solvers \ Waiting
\* Against an unsat stands every sat that the engine which says unsat cannot judge.
Verdict ==
    CASE Unsats # {} /\ {s \in Sats : ~Troubled(s)} # {} -> "unknown"
      [] \E s \in Sats : Accepted(s) -> "sat"
      [] Unsats # {} -> "unsat"
      [] why # "lost-race" -> "unknown"
      [] \A s \in Asked : s \in known /\ Troubled(s) -> "raised"
      [] \A s \in Asked : s \in known /\ (Troubled(s) \/ end[s] = "failed") -> "error"
      [] OTHER -> "unknown"

Recorded(s) ==
    CASE future[s] = "none" -> "none"
      [] s \in known -> IF Troubled(s) \/ end[s] = "failed" THEN "error" ELSE end[s]
      [] future[s] # "cancelled" /\ end[s] \in Reasons -> end[s]
      [] future[s] # "cancelled" /\ end[s] # "none" -> "unheard"
      [] OTHER -> why

Leave ==
    /\ race = "leave"
    /\ race' = "done"
    /\ answer' = Verdict
    /\ winner' = CASE Verdict = "sat" -> First({s \in Sats : Accepted(s)})
                   [] Verdict = "unsat" -> First(Unsats)
                   [] OTHER -> Nobody
    /\ record' = [s \in Solvers |-> Recorded(s)]
    /\ closer' = IF closer = "await" THEN Closing(closing, stage) ELSE closer
    /\ UNCHANGED <<why, over, ripe, patience, inbox, known, told, callVars, poolVars, late, token, closing>>

-----------------------------------------------------------------------------
(* The parts, each on a thread of the pool.                                *)

\* Whoever registers looks at the switch of its race.
Seen == over

Register(c, outcome) ==
    LET at == CASE Seen \/ late -> "settle" [] outcome = "no helper" -> "settle" [] OTHER -> "asked"
    IN /\ stage[c] = "register"
       /\ outcome \in IF Closed(c) THEN {"refused"} ELSE IF Seen \/ late THEN {"registered"}
                      ELSE {"registered", "no helper"}
       /\ IF outcome = "refused"
          THEN \* ClosedError comes out of the part, whether the engine or the check was refused.
               /\ end' = [end EXCEPT ![c] = "refused"]
               /\ LET s == CHOOSE s \in Solvers : c \in {s, CheckOf[s]}
                  IN /\ stage' = [stage EXCEPT ![c] = "done", ![s] = "report"]
                     /\ future' = [future EXCEPT ![s] = "done"]
               /\ UNCHANGED <<reason, heard>>
          ELSE /\ stage' = [stage EXCEPT ![c] = at]
               /\ reason' = [reason EXCEPT ![c] = CASE Seen -> why [] late -> "deadline" [] OTHER -> @]
               /\ heard' = [heard EXCEPT ![c] = IF outcome = "no helper" THEN "no helper" ELSE @]
               /\ UNCHANGED <<end, future>>
       /\ UNCHANGED <<raceVars, id, idle, busy, late, token, closeVars, endVars>>

\* Answer or cancellation, decided once. A sat goes to another engine; the part ends with anything else.
Settle(c, outcome) ==
    LET because == IF reason[c] = "none" /\ heard[c] = "timeout" THEN "deadline" ELSE reason[c]
        checks  == c \in Solvers /\ because = "none" /\ heard[c] = "sat" /\ CheckOf[c] # NoCheck
        s       == CHOOSE s \in Solvers : c \in {s, CheckOf[s]}
        number  == Cardinality({k \in Checks : id[k] # 0}) + 1
    IN /\ stage[c] = "settle"
       /\ outcome = IF because = "none" THEN "answered" ELSE because
       /\ end' = [end EXCEPT ![c] = IF because = "none" THEN heard[c] ELSE because]
       /\ reason' = [reason EXCEPT ![c] = "none"]
       /\ heard' = [heard EXCEPT ![c] = "none"]
       /\ stage' = IF checks THEN [stage EXCEPT ![c] = "checking", ![CheckOf[c]] = "register"]
                   ELSE [stage EXCEPT ![c] = "done", ![s] = "report"]
       /\ id' = IF checks THEN [id EXCEPT ![CheckOf[c]] = number] ELSE id
       /\ future' = IF checks THEN future ELSE [future EXCEPT ![s] = "done"]
       /\ closer' = IF closer = "left" THEN Closing(closing, stage') ELSE closer
       /\ UNCHANGED <<raceVars, idle, busy, late, token, closing, endVars>>

Report(s) ==
    /\ stage[s] = "report"
    /\ inbox' = IF race \in {"leave", "done"} THEN inbox ELSE Append(inbox, s)
    /\ Taken(future, [stage EXCEPT ![s] = "done"])
    /\ closer' = IF closer = "pool" THEN Closing(closing, stage') ELSE closer
    /\ UNCHANGED <<race, why, over, ripe, patience, known, told, reason, heard, end, id, busy, late, token,
                   closing, endVars>>

-----------------------------------------------------------------------------
(* The user and the closer.                                                *)

Letter(because) == inbox' = IF race \in {"leave", "done"} THEN inbox ELSE Append(inbox, because)

\* Nobody reads letters once the race is over, so the checks are told directly.
Tells(because) == IF over THEN Inform(Checks, because) ELSE UNCHANGED <<stage, reason, heard>>

\* Nobody listens before the race has entered, and none that has left.
Cancel ==
    /\ ~token
    /\ token' = TRUE
    /\ IF race \in {"enter", "leave", "done"} THEN UNCHANGED <<inbox, stage, reason, heard>>
       ELSE Letter("user") /\ Tells("user")
    /\ UNCHANGED <<race, why, over, ripe, patience, known, told, end, id, poolVars, late, closeVars, endVars>>

Shut ==
    /\ closer = "open"
    /\ closer' = IF race \in {"enter", "done"} THEN Closing(0, stage) ELSE "tell"
    /\ UNCHANGED <<raceVars, callVars, poolVars, late, token, closing, endVars>>

\* The race itself finds that it was cancelled before it entered; the closer tells it that it is closed.
Tell(by) ==
    \/ /\ by = "race" /\ race = "tell"
       /\ race' = "go"
       /\ inbox' = Append(inbox, "user")
       /\ UNCHANGED <<why, over, ripe, patience, known, told, callVars, poolVars, late, token, closeVars, endVars>>
    \/ /\ by = "closer" /\ closer = "tell"
       /\ Letter("closed") /\ Tells("closed")
       /\ closer' = IF race = "done" THEN Closing(0, stage) ELSE "await"
       /\ UNCHANGED <<race, why, over, ripe, patience, known, told, end, id, poolVars, late, token, closing, endVars>>

Close(lane) ==
    /\ closer = "lane" /\ lane = closing + 1
    /\ closing' = lane
    /\ Inform(Lanes[lane], "closed")
    /\ closer' = Closing(lane, stage')
    /\ UNCHANGED <<raceVars, end, id, poolVars, late, token, endVars>>

-----------------------------------------------------------------------------
(* Environment: engines, machines, time.                                   *)

\* An answer; or the helper dies or talks nonsense, which is "failed".
Reply(c, finding) ==
    /\ stage[c] = "asked"
    /\ heard' = [heard EXCEPT ![c] = finding]
    /\ stage' = [stage EXCEPT ![c] = "settle"]
    /\ UNCHANGED <<raceVars, reason, end, id, poolVars, late, token, closeVars, endVars>>

\* An earlier loser leaves the pool.
FreeThread ==
    /\ busy > 0
    /\ busy' = busy - 1
    /\ Taken(future, stage)
    /\ UNCHANGED <<raceVars, reason, heard, end, id, late, token, closeVars, endVars>>

Over == race = "done" /\ \A c \in Calls : stage[c] \in {"idle", "done"}

Expire ==
    /\ ~late /\ ~Over
    /\ late' = TRUE
    /\ heard' = [c \in Calls |-> IF stage[c] = "asked" THEN "timeout" ELSE heard[c]]
    /\ stage' = [c \in Calls |-> IF stage[c] = "asked" THEN "settle" ELSE stage[c]]
    /\ patience' = (patience /\ race # "settle")
    /\ IF Reads THEN Onward(race, why, Unheard, inbox, FALSE, TRUE, patience')
       ELSE UNCHANGED <<race, why, inbox>>
    /\ ripe' = (ripe \/ race' = "call off")
    /\ UNCHANGED <<over, known, told, reason, end, id, poolVars, token, closeVars, endVars>>

\* The hedge's delay passes.
Delay ==
    /\ race = "go" /\ CanStart /\ ~ripe /\ inbox = <<>>
    /\ ripe' = TRUE
    /\ UNCHANGED <<race, why, over, patience, inbox, known, told, callVars, poolVars, late, token, closeVars, endVars>>

\* The losers' time to report passes.
GiveUp ==
    /\ race = "settle" /\ Waits
    /\ patience' = FALSE
    /\ Onward("settle", why, Unheard, inbox, FALSE, late, FALSE)
    /\ UNCHANGED <<over, ripe, known, told, callVars, poolVars, late, token, closeVars, endVars>>

-----------------------------------------------------------------------------

Racing ==
    \/ \E o \in {"entered", "refused"} : Enter(o)
    \/ Tell("race") \/ CallOff \/ Leave
    \/ \E s \in Solvers : Submit(s) \/ CancelSolver(s) \/ \E o \in {"cancelled", "running"} : CancelFuture(s, o)
    \/ \E l \in Solvers \cup {"user", "closed"} : Hear(l)

Part(s) ==
    \/ \E c \in {s, CheckOf[s]} \cap Calls :
        \/ \E o \in {"registered", "refused", "no helper"} : Register(c, o)
        \/ \E o \in Reasons \cup {"answered"} : Settle(c, o)
    \/ Report(s)

Shutting == Shut \/ Tell("closer") \/ \E i \in 1..Len(Lanes) : Close(i)

Environment ==
    \/ \E c \in Calls, f \in Replies \cup {"failed"} : Reply(c, f)
    \/ FreeThread \/ Expire \/ Delay \/ GiveUp

Next == Racing \/ (\E s \in Solvers : Part(s)) \/ Cancel \/ Shutting \/ Environment

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* Fairness, per action.                                                   *)

\* The asking thread waits for nothing but letters, and for those with a deadline.
FairRace     == WF_vars(Racing)
\* A thread of the pool runs on; what it waits for in a solver ends, as Cancellation says.
FairParts    == \A s \in Solvers : WF_vars(Part(s))
\* close runs on, and waits for the race, its calls and its threads.
FairClosing  == WF_vars(Tell("closer")) /\ \A i \in 1..Len(Lanes) : WF_vars(Close(i))
\* Time passes: the deadline, and the time that losers get.
FairDeadline == WF_vars(Expire)
FairPatience == WF_vars(GiveUp)

Fairness == FairRace /\ FairParts /\ FairClosing /\ FairDeadline /\ FairPatience

-----------------------------------------------------------------------------
(* Safety.                                                                 *)

\* RACE-1: OnlyVerified: a race returns sat only with a model that another engine confirmed, and unsat only
\*  if an engine said so and none of those heard has a model that stands.
OnlyVerified ==
    /\ answer = "sat" => end[winner] = "sat" /\ end[CheckOf[winner]] = "sat" /\ \A s \in known : end[s] # "unsat"
    /\ answer = "unsat" => end[winner] = "unsat" /\ \A s \in known : end[s] = "sat" => Troubled(s)

\* RACE-2: VerifiedBeforeDismissal: nobody loses to an answer that was not accepted.
VerifiedBeforeDismissal ==
    over /\ why = "lost-race" => Decided(known) \/ known = Solvers

\* RACE-3: LosersAwaited: a race that was not short of patience leaves nothing queued, running, registered or
\*  alive.
LosersAwaited ==
    race = "done" /\ patience =>
        /\ \A c \in Calls : stage[c] \in {"idle", "done"}
        /\ \A s \in Solvers : future[s] \notin {"queued", "running"}

\* RACE-4: NobodyRunsOn: once the losers are dismissed no helper works for the race, and none will.
NobodyRunsOn ==
    race \in {"settle", "leave", "done"} =>
        /\ \A c \in Calls : stage[c] # "asked" /\ (stage[c] = "settle" => reason[c] # "none")
        /\ \A s \in Solvers : future[s] # "queued"

\* RACE-5: RecordedExactly: an attempt is recorded as cancelled exactly if a cancellation reached it before it
\*  settled, or its part before it began.
RecordedExactly ==
    race = "done" => \A s \in Solvers :
        /\ record[s] \in Reasons => end[s] \in Reasons \cup {"none", "refused"}
        /\ record[s] \notin Reasons \cup {"none"} => end[s] \notin Reasons \cup {"none"}

\* RACE-6: CancelledForCause: who ends cancelled was called off, or closed, or late.
CancelledForCause ==
    \A c \in Calls : /\ end[c] = "lost-race" => over /\ why = "lost-race"
                     /\ end[c] = "user" => over /\ token
                     /\ end[c] = "closed" => over /\ closer # "open"
                     /\ end[c] = "deadline" => late

\* RACE-7: FreshIds: no attempt id is used twice.
FreshIds ==
    /\ \A s, t \in Solvers : id[s] # 0 /\ id[s] = id[t] => s = t
    /\ \A k, l \in Checks : id[k] # 0 /\ id[k] = id[l] => k = l

\* RACE-8: OneWinner: a definite answer is one engine's, whose attempt is recorded with it.
OneWinner ==
    race = "done" => IF answer \in {"sat", "unsat"} THEN winner # Nobody /\ record[winner] = answer
                     ELSE winner = Nobody

\* RACE-9: WithinBudget: never more engines at once than there are CPUs for.
WithinBudget == Cardinality(Unheard) <= Cpus

\* RACE-10: HeardIsOver: of whom the race has heard, nothing goes on.
HeardIsOver ==
    \A s \in known : stage[s] = "done" /\ (CheckOf[s] # NoCheck => stage[CheckOf[s]] \in {"idle", "done"})

\* RACE-11: ClosedIsStill: once close is done no race runs, and nothing of one.
ClosedIsStill ==
    closer = "done" => race \in {"enter", "done"} /\ \A c \in Calls : stage[c] \in {"idle", "done"}

\* RACE-12: ReturnedStays: what was returned and recorded does not change.
ReturnedStays == [][race = "done" => UNCHANGED endVars]_vars

-----------------------------------------------------------------------------
(* Liveness.                                                               *)

\* RACE-13: a race that has entered ends.
RaceEnds == (race # "enter") ~> (race = "done")

\* RACE-14: whoever was asked ends, whether or not the race waits for it.
PartsEnd == \A s \in Solvers : (future[s] = "running") ~> (stage[s] = "done")

\* RACE-15: close ends.
CloseEnds == (closer # "open") ~> (closer = "done")
=============================================================================
