---------------------------- MODULE Cancellation ----------------------------
(***************************************************************************)
(* One engine's solver, and how its requests are cancelled (F381).         *)
(*                                                                         *)
(* Any number of requests, each a call of solve on a thread of its own,    *)
(* share one helper, which serves one at a time. Cancellers end all        *)
(* requests for one query; a closer ends everything. The steps are those   *)
(* of PersistentSolver, each taken under its state lock; between them a    *)
(* thread holds nothing but, perhaps, the turn at the helper.              *)
(*                                                                         *)
(* Decided here                                                            *)
(*  - A generation is one helper process: valid, then broken (dead, killed *)
(*    or in doubt), then retired. Every request spawns at most one.        *)
(*  - A wait ends in the step that ends it: who waits for the turn stands  *)
(*    at AcquireIO again once the turn is free, or it was told, or it is   *)
(*    late; and close takes the helper in the step in which the last       *)
(*    request unregisters.                                                 *)
(*  - An exchange ends in the step that ends it: an answer, the death of   *)
(*    the helper, a signal, or the deadline.                               *)
(*                                                                         *)
(* Left out, and why                                                       *)
(*  - Requests that cannot be framed and attempt ids used before: refused  *)
(*    on this side, and the generation stays.                              *)
(*  - Recycling by size and count: as if the engine had raised.            *)
(*  - close giving up after its grace: it then leaves the helper to the    *)
(*    request that has it.                                                 *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Requests,    \* calls of solve
    Queries,     \* query ids
    QueryOf,     \* request -> the query it asks for
    Racing,      \* the requests that carry the switch of their race
    Limited,     \* the requests whose deadline may pass
    Cancellers,  \* threads that cancel queries
    Closer,      \* the thread that closes the solver
    Nobody       \* the holder of a free turn

Generations == 1..Cardinality(Requests)
None == 0        \* no generation
Hands == Requests \cup Cancellers \cup {Closer}

ASSUME /\ QueryOf \in [Requests -> Queries]
       /\ Racing \subseteq Requests /\ Limited \subseteq Requests
       /\ Closer \notin Cancellers /\ (Cancellers \cup {Closer}) \cap Requests = {}
       /\ Nobody \notin Requests

VARIABLES
    pc,          \* request -> the step it takes next; "queued" and "asked" are waits
    reason,      \* request -> why its event is set; "none" while it is not
    heard,       \* request -> what came of its exchange
    ended,       \* request -> the reason its attempt is recorded with; "none" if it was not cancelled
    used,        \* request -> the generation it was given
    running,     \* the registered requests
    holder,      \* whose turn at the helper it is
    active,      \* whose request the generation works on
    generation,  \* the generation that the next request would find
    life,        \* generation -> what became of it
    hand,        \* thread -> the generation that it has captured to kill or to retire
    closer,      \* the step that the closer takes next
    closed,      \* new requests are refused
    over,        \* the switch of the race is set
    late,        \* the requests whose deadline has passed
    due          \* the requests that somebody cancelled between their Register and their Settle

vars == <<pc, reason, heard, ended, used, running, holder, active, generation, life, hand, closer, closed,
          over, late, due>>

Steps    == {"register", "acquire", "queued", "admit", "bury", "spawn", "exchange", "asked", "answer", "settle",
             "retire", "unregister", "done"}
Reasons  == {"none", "user", "closed", "lost-race", "deadline"}
Findings == {"none", "answer", "error", "crashed", "killed", "timeout", "no helper"}

\* From its Register until what came of it is decided.
Unsettled == {"acquire", "queued", "admit", "bury", "spawn", "exchange", "asked", "answer", "settle"}
\* Has the turn at the helper.
Inside    == {"admit", "bury", "spawn", "exchange", "asked", "answer", "settle"}
\* Works, or has worked, on a generation and has not let it go.
Working   == {"exchange", "asked", "answer", "settle"}

\* CANCEL-0: every variable has its type.
TypeOK == /\ pc \in [Requests -> Steps]
          /\ reason \in [Requests -> Reasons] /\ ended \in [Requests -> Reasons]
          /\ heard \in [Requests -> Findings]
          /\ used \in [Requests -> Generations \cup {None}]
          /\ running \subseteq Requests
          /\ holder \in Requests \cup {Nobody} /\ active \in Requests \cup {Nobody}
          /\ generation \in Generations \cup {None}
          /\ life \in [Generations -> {"unborn", "valid", "broken", "retired"}]
          /\ hand \in [Hands -> Generations \cup {None}]
          /\ closer \in {"open", "signal", "wait", "retire", "done"}
          /\ closed \in BOOLEAN /\ over \in BOOLEAN
          /\ late \subseteq Limited /\ due \subseteq Requests

Init == /\ pc = [r \in Requests |-> "register"]
        /\ reason = [r \in Requests |-> "none"]
        /\ heard = [r \in Requests |-> "none"]
        /\ ended = [r \in Requests |-> "none"]
        /\ used = [r \in Requests |-> None]
        /\ running = {}
        /\ holder = Nobody
        /\ active = Nobody
        /\ generation = None
        /\ life = [g \in Generations |-> "unborn"]
        /\ hand = [w \in Hands |-> None]
        /\ closer = "open"
        /\ closed = FALSE
        /\ over = FALSE
        /\ late = {}
        /\ due = {}

-----------------------------------------------------------------------------
(* Parts of steps.                                                         *)

\* Cancelled, or out of time, which is the same thing.
IsOver(r) == reason[r] # "none" \/ r \in late
Noted(r)  == IF reason[r] = "none" /\ r \in late THEN [reason EXCEPT ![r] = "deadline"] ELSE reason

\* Where everybody stands once the turn, the events and the time are these: a wait is over.
Woken(places, turn, events, past) ==
    [r \in Requests |-> IF places[r] = "queued" /\ (turn = Nobody \/ events[r] # "none" \/ r \in past)
                        THEN "acquire" ELSE places[r]]

Go(r, step) == pc' = [pc EXCEPT ![r] = step]

\* Who waits for a reply of generation g is told what became of it.
Interrupted(g, finding) ==
    LET hit == {r \in Requests : pc[r] = "asked" /\ used[r] = g}
    IN /\ heard' = [r \in Requests |-> IF r \in hit THEN finding ELSE heard[r]]
       /\ pc' = [r \in Requests |-> IF r \in hit THEN "answer" ELSE pc[r]]

\* Events that are not set yet are set for why; whoever should know is due.
Tell(registered, meant, why) ==
    /\ reason' = [r \in Requests |-> IF r \in registered /\ reason[r] = "none" THEN why ELSE reason[r]]
    /\ due' = due \cup {r \in meant : pc[r] \in Unsettled}
    /\ pc' = Woken(pc, holder, reason', late)

Aim(registered) == IF active \in registered THEN generation ELSE None

\* What close does when its wait is over: it takes the helper that is left.
Detach(left) ==
    IF left = {}
    THEN /\ hand' = [hand EXCEPT ![Closer] = generation]
         /\ generation' = None
         /\ closer' = IF generation = None THEN "done" ELSE "retire"
    ELSE /\ closer' = "wait"
         /\ hand' = [hand EXCEPT ![Closer] = None]
         /\ UNCHANGED generation

-----------------------------------------------------------------------------
(* System: one request.                                                    *)

Register(r, outcome) ==
    /\ pc[r] = "register"
    /\ outcome = IF closed THEN "refused" ELSE "registered"
    /\ IF closed
       THEN Go(r, "done") /\ UNCHANGED <<running, reason, due>>
       ELSE /\ running' = running \cup {r}
            /\ reason' = IF over /\ r \in Racing THEN [reason EXCEPT ![r] = "lost-race"] ELSE reason
            /\ due' = IF over /\ r \in Racing THEN due \cup {r} ELSE due
            /\ Go(r, "acquire")
    /\ UNCHANGED <<heard, ended, used, holder, active, generation, life, hand, closer, closed, over, late>>

AcquireIO(r, outcome) ==
    /\ pc[r] = "acquire"
    /\ outcome = IF holder = Nobody THEN "acquired" ELSE IF IsOver(r) THEN "left" ELSE "busy"
    /\ holder' = IF outcome = "acquired" THEN r ELSE holder
    /\ reason' = IF outcome = "left" THEN Noted(r) ELSE reason
    /\ ended' = [ended EXCEPT ![r] = IF outcome = "left" THEN reason'[r] ELSE @]
    /\ Go(r, CASE outcome = "acquired" -> "admit" [] outcome = "left" -> "unregister" [] OTHER -> "queued")
    /\ UNCHANGED <<heard, used, running, active, generation, life, hand, closer, closed, over, late, due>>

Admit(r, outcome) ==
    LET fit == generation # None /\ life[generation] = "valid"
    IN /\ pc[r] = "admit"
       /\ outcome = IF IsOver(r) THEN "cancelled" ELSE IF fit THEN "warm" ELSE "cold"
       /\ reason' = Noted(r)
       /\ active' = IF outcome = "cancelled" THEN active ELSE r
       /\ used' = IF outcome = "warm" THEN [used EXCEPT ![r] = generation] ELSE used
       /\ generation' = IF outcome = "cold" THEN None ELSE generation
       /\ hand' = IF outcome = "cold" THEN [hand EXCEPT ![r] = generation] ELSE hand
       /\ Go(r, CASE outcome = "cancelled" -> "settle"
                  [] outcome = "warm"      -> "exchange"
                  [] OTHER                 -> IF generation = None THEN "spawn" ELSE "bury")
       /\ UNCHANGED <<heard, ended, running, holder, life, closer, closed, over, late, due>>

Unborn == {g \in Generations : life[g] = "unborn"}
Newest == CHOOSE g \in Unborn : \A other \in Unborn : g <= other

Spawn(r) ==
    /\ pc[r] = "spawn"
    /\ generation' = Newest
    /\ used' = [used EXCEPT ![r] = Newest]
    /\ life' = [life EXCEPT ![Newest] = "valid"]
    /\ Go(r, "exchange")
    /\ UNCHANGED <<reason, heard, ended, running, holder, active, hand, closer, closed, over, late, due>>

\* Sent to a helper that is dead by then, it fails at once.
Exchange(r, outcome) ==
    LET dead == life[used[r]] # "valid"
    IN /\ pc[r] = "exchange"
       /\ outcome = IF IsOver(r) THEN "cancelled" ELSE "sent"
       /\ reason' = Noted(r)
       /\ heard' = [heard EXCEPT ![r] = IF outcome = "sent" /\ dead THEN "crashed" ELSE @]
       /\ Go(r, CASE outcome = "cancelled" -> "settle" [] dead -> "answer" [] OTHER -> "asked")
       /\ UNCHANGED <<ended, used, running, holder, active, generation, life, hand, closer, closed, over, late, due>>

Answer(r, outcome) ==
    /\ pc[r] = "answer"
    /\ outcome = CASE heard[r] = "answer" -> "sat" [] heard[r] = "error" -> "error" [] OTHER -> "failed"
    /\ Go(r, "settle")
    /\ UNCHANGED <<reason, heard, ended, used, running, holder, active, generation, life, hand, closer, closed,
                   over, late, due>>

\* Only an answer that nobody cancelled leaves the generation to the next request.
Settle(r, outcome) ==
    LET why    == IF reason[r] = "none" /\ heard[r] = "timeout" THEN "deadline" ELSE reason[r]
        doomed == IF why # "none" \/ heard[r] # "answer" THEN generation ELSE None
    IN /\ pc[r] = "settle"
       /\ outcome = IF why = "none" THEN "answered" ELSE why
       /\ reason' = [reason EXCEPT ![r] = why]
       /\ ended' = [ended EXCEPT ![r] = why]
       /\ hand' = [hand EXCEPT ![r] = doomed]
       /\ generation' = IF doomed = None THEN generation ELSE None
       /\ active' = IF active = r THEN Nobody ELSE active
       /\ holder' = Nobody
       /\ pc' = Woken([pc EXCEPT ![r] = IF doomed = None THEN "unregister" ELSE "retire"], Nobody, reason, late)
       /\ UNCHANGED <<heard, used, running, life, closer, closed, over, late, due>>

\* The helper is killed and its descriptors are given back.
Retire(w, g) ==
    /\ g = hand[w] /\ g # None
    /\ \/ w \in Requests /\ pc[w] = "bury" /\ Go(w, "spawn") /\ UNCHANGED closer
       \/ w \in Requests /\ pc[w] = "retire" /\ Go(w, "unregister") /\ UNCHANGED closer
       \/ w = Closer /\ closer = "retire" /\ closer' = "done" /\ UNCHANGED pc
    /\ life' = [life EXCEPT ![g] = "retired"]
    /\ hand' = [hand EXCEPT ![w] = None]
    /\ UNCHANGED <<reason, heard, ended, used, running, holder, active, generation, closed, over, late, due>>

\* Its event and what it heard are gone; what remains is the record of its attempt.
Unregister(r) ==
    /\ pc[r] = "unregister"
    /\ running' = running \ {r}
    /\ reason' = [reason EXCEPT ![r] = "none"]
    /\ heard' = [heard EXCEPT ![r] = "none"]
    /\ due' = due \ {r}
    /\ Go(r, "done")
    /\ IF closer = "wait" THEN Detach(running') ELSE UNCHANGED <<hand, generation, closer>>
    /\ UNCHANGED <<ended, used, holder, active, life, closed, over, late>>

-----------------------------------------------------------------------------
(* System: cancellation.                                                   *)

\* The race is decided; whoever of it has not registered yet will find out.
CallOff ==
    /\ ~over
    /\ over' = TRUE
    /\ UNCHANGED <<pc, reason, heard, ended, used, running, holder, active, generation, life, hand, closer, closed,
                   late, due>>

CancelSolver(c, q, outcome) ==
    LET registered == {r \in running : QueryOf[r] = q}
    IN /\ hand[c] = None
       /\ outcome = IF registered = {} THEN "nobody" ELSE "told"
       /\ Tell(registered, {r \in Requests : QueryOf[r] = q}, "user")
       /\ hand' = [hand EXCEPT ![c] = Aim(registered)]
       /\ UNCHANGED <<heard, ended, used, running, holder, active, generation, life, closer, closed, over, late>>

\* The helper that was captured dies, whatever it does by now.
Signal(w, g) ==
    /\ g = hand[w] /\ g # None
    /\ w \in Cancellers \/ (w = Closer /\ closer = "signal")
    /\ life' = [life EXCEPT ![g] = IF @ = "valid" THEN "broken" ELSE @]
    /\ Interrupted(g, "killed")
    /\ IF w = Closer THEN Detach(running)
       ELSE hand' = [hand EXCEPT ![w] = None] /\ UNCHANGED <<closer, generation>>
    /\ UNCHANGED <<reason, ended, used, running, holder, active, closed, over, late, due>>

Close ==
    /\ closer = "open"
    /\ closed' = TRUE
    /\ Tell(running, Requests, "closed")
    /\ IF Aim(running) = None THEN Detach(running)
       ELSE /\ hand' = [hand EXCEPT ![Closer] = Aim(running)]
            /\ closer' = "signal"
            /\ UNCHANGED generation
    /\ UNCHANGED <<heard, ended, used, running, holder, active, life, over, late>>

-----------------------------------------------------------------------------
(* Environment: engines, machines, time.                                   *)

\* An answer, or the engine says that it raised.
Reply(r, finding) ==
    /\ pc[r] = "asked" /\ life[used[r]] = "valid"
    /\ heard' = [heard EXCEPT ![r] = finding]
    /\ Go(r, "answer")
    /\ UNCHANGED <<reason, ended, used, running, holder, active, generation, life, hand, closer, closed, over, late,
                   due>>

\* A helper dies or talks nonsense.
Crash(g) ==
    /\ life[g] = "valid"
    /\ life' = [life EXCEPT ![g] = "broken"]
    /\ Interrupted(g, "crashed")
    /\ UNCHANGED <<reason, ended, used, running, holder, active, generation, hand, closer, closed, over, late, due>>

\* The machine has no process to give.
FailSpawn(r) ==
    /\ pc[r] = "spawn"
    /\ heard' = [heard EXCEPT ![r] = "no helper"]
    /\ reason' = Noted(r)
    /\ Go(r, "settle")
    /\ UNCHANGED <<ended, used, running, holder, active, generation, life, hand, closer, closed, over, late, due>>

\* Whoever waits for a reply gets none; whoever waits for the turn waits no more.
Expire(r) ==
    /\ r \in Limited \ late /\ pc[r] # "done"
    /\ late' = late \cup {r}
    /\ IF pc[r] = "asked"
       THEN /\ life' = [life EXCEPT ![used[r]] = "broken"]
            /\ Interrupted(used[r], "timeout")
       ELSE pc' = Woken(pc, holder, reason, late') /\ UNCHANGED <<heard, life>>
    /\ UNCHANGED <<reason, ended, used, running, holder, active, generation, hand, closer, closed, over, due>>

-----------------------------------------------------------------------------

Request(r) ==
    \/ Spawn(r) \/ Unregister(r)
    \/ \E o \in {"registered", "refused"} : Register(r, o)
    \/ \E o \in {"acquired", "left", "busy"} : AcquireIO(r, o)
    \/ \E o \in {"cancelled", "warm", "cold"} : Admit(r, o)
    \/ \E o \in {"cancelled", "sent"} : Exchange(r, o)
    \/ \E o \in {"sat", "error", "failed"} : Answer(r, o)
    \/ \E o \in Reasons \cup {"answered"} : Settle(r, o)

Killing(w) == \E g \in Generations : Retire(w, g) \/ Signal(w, g)

Cancelling ==
    \/ CallOff \/ Close
    \/ \E c \in Cancellers, q \in Queries, o \in {"told", "nobody"} : CancelSolver(c, q, o)

Environment ==
    \/ \E r \in Requests : FailSpawn(r) \/ Expire(r) \/ \E f \in {"answer", "error"} : Reply(r, f)
    \/ \E g \in Generations : Crash(g)

Next == (\E r \in Requests : Request(r)) \/ (\E w \in Hands : Killing(w)) \/ Cancelling \/ Environment

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* Fairness, per action.                                                   *)

\* A thread of the pool runs on; none of these steps waits for anybody but the state lock, held for moments.
FairRegister   == \A r \in Requests : WF_vars(\E o \in {"registered", "refused"} : Register(r, o))
FairAcquire    == \A r \in Requests : WF_vars(\E o \in {"acquired", "left", "busy"} : AcquireIO(r, o))
FairAdmit      == \A r \in Requests : WF_vars(\E o \in {"cancelled", "warm", "cold"} : Admit(r, o))
FairExchange   == \A r \in Requests : WF_vars(\E o \in {"cancelled", "sent"} : Exchange(r, o))
FairAnswer     == \A r \in Requests : WF_vars(\E o \in {"sat", "error", "failed"} : Answer(r, o))
\* Settle and Unregister stand in a finally, Retire behind it; Retire and Signal do not wait for the helper.
FairSettle     == \A r \in Requests : WF_vars(\E o \in Reasons \cup {"answered"} : Settle(r, o))
FairUnregister == \A r \in Requests : WF_vars(Unregister(r))
FairRetire     == \A w \in Hands : WF_vars(\E g \in Generations : Retire(w, g))
FairSignal     == \A w \in Hands : WF_vars(\E g \in Generations : Signal(w, g))
\* spawn gives a helper or raises by the request's deadline.
FairSpawn      == \A r \in Requests : WF_vars(Spawn(r) \/ FailSpawn(r))
\* Time passes.
FairTime       == \A r \in Requests : WF_vars(Expire(r))

Fairness == /\ FairRegister /\ FairAcquire /\ FairAdmit /\ FairSpawn /\ FairExchange /\ FairAnswer /\ FairSettle
            /\ FairRetire /\ FairUnregister /\ FairSignal /\ FairTime

-----------------------------------------------------------------------------
(* Safety. The first five are those of F381 section 3.                     *)

\* CANCEL-1: RegistrationBeforeIO: whoever waits for the turn, or has it, is registered.
RegistrationBeforeIO == \A r \in Requests : pc[r] \in Unsettled => r \in running

\* CANCEL-2: ExactActiveInterrupt: a generation that is captured to be killed works for nobody but those told.
ExactActiveInterrupt ==
    \A w \in Cancellers \cup {Closer} : hand[w] # None =>
        \A r \in Requests : pc[r] \in Working /\ used[r] = hand[w] => reason[r] # "none"

\* CANCEL-3: NoLostCancellation: whoever was cancelled between Register and Settle knows it, and ends cancelled.
NoLostCancellation ==
    \A r \in due : IF pc[r] \in Unsettled THEN reason[r] # "none" ELSE ended[r] # "none"

\* CANCEL-4: CleanupTotality: who has left has left nothing: no turn, no work, no helper to retire.
CleanupTotality == \A r \in Requests : pc[r] \in {"register", "done"} => holder # r /\ active # r /\ hand[r] = None

\* CANCEL-5: ColdRecovery: the generation that the next request would find served nobody who was cancelled.
ColdRecovery == \A r \in Requests : ended[r] # "none" /\ used[r] # None => used[r] # generation

\* CANCEL-6: no signal reaches a request that was not told.
SignalHitsOnlyTold == \A r \in Requests : heard[r] = "killed" => reason[r] # "none"

\* CANCEL-7: an attempt is recorded as cancelled exactly if somebody cancelled it before it settled, or time did.
CancelledExactly ==
    \A r \in Requests : pc[r] \in {"retire", "unregister"} =>
        /\ r \in due => ended[r] # "none"
        /\ ended[r] \in {"user", "closed", "lost-race"} => r \in due
        /\ ended[r] = "deadline" => r \in late

\* CANCEL-8: no event survives its request.
NoEventSurvives ==
    \A r \in Requests : pc[r] \in {"register", "done"} => r \notin running /\ reason[r] = "none"

\* CANCEL-9: nobody waits for an answer of a generation that is not valid, and none that is retired serves again.
RetiredNeverAnswers ==
    /\ \A r \in Requests : pc[r] = "asked" => life[used[r]] = "valid"
    /\ generation # None => life[generation] \in {"valid", "broken"}

\* CANCEL-10: once close is done nothing is registered, active or alive.
ClosedIsEmpty ==
    closer = "done" => /\ running = {} /\ active = Nobody /\ holder = Nobody /\ generation = None
                       /\ \A g \in Generations : life[g] \in {"unborn", "retired"}

\* CANCEL-11: one request at a time is inside, and it is the holder of the turn.
OneInside == \A r \in Requests : pc[r] \in Inside <=> holder = r

\* CANCEL-12: whoever waits for a reply and was told is aimed at, so it does not wait for the engine.
ToldIsAimedAt ==
    \A r \in Requests : pc[r] = "asked" /\ reason[r] # "none" =>
        \E w \in Cancellers \cup {Closer} : hand[w] = used[r]

\* CANCEL-13: whoever is cancelled leaves no generation behind, whether or not it was sent.
ColdAfterCancel ==
    [][\A r \in Requests : pc[r] = "settle" /\ pc'[r] # "settle" /\ ended'[r] # "none" => generation' = None]_vars

-----------------------------------------------------------------------------
(* Liveness.                                                               *)

\* CANCEL-14: a cancellation that reached a request leads to its end, whatever the engine does.
CancelledEnds == \A r \in Requests : (r \in due) ~> (pc[r] = "done")

\* CANCEL-15: close ends.
CloseEnds == (closer # "open") ~> (closer = "done")

\* CANCEL-16: every request ends.
EveryRequestEnds == \A r \in Requests : <>(pc[r] = "done")
=============================================================================
