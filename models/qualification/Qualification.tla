--------------------------- MODULE Qualification ---------------------------
(***************************************************************************)
(* Masters prove to each other that a shared directory's lock excludes     *)
(* across hosts, again while they run, and stop in order when it does not  *)
(* (F355 section 10.4: F352 transcript, F353 admission, F354 consumer      *)
(* containment and F355 producer totalization composed).                   *)
(*                                                                         *)
(* Every rank is one master. Rank 0 is the root of a star: in each phase   *)
(* every rank sends a record of what it found, and the root answers all    *)
(* of them. The steps are those of smtspool.cluster.                       *)
(*                                                                         *)
(* Decided here                                                            *)
(*  - A phase of a rank is Enter (its work and its record), a wait, and    *)
(*    Exchange, which takes what the wait ended with. Five kinds of work   *)
(*    are steps of their own, before Enter. A wait ends in the step that   *)
(*    ends it: a message, or Expire, the only place where a deadline is    *)
(*    looked at. So a slow peer is one whose steps come after Expire of    *)
(*    another; a missing one takes none.                                   *)
(*  - Whatever ends a run of the protocol on a rank, the same step closes  *)
(*    all its descriptors, and on the root it removes the lock file.       *)
(*  - An ordinary exception can come in every step and every wait of the   *)
(*    protocol, a control exception in all of them and in the consumers.   *)
(*  - Abort ends every rank at once, as MPI does.                          *)
(*                                                                         *)
(* Left out, and why                                                       *)
(*  - Messages of other runs: they are drained and change nothing (Stray), *)
(*    and a failed run has no successor on the same communicator.          *)
(*  - A renewal request that is lost: as a peer that is slow to Observe.   *)
(*  - The capability probe and the contents of records: their verdict is   *)
(*    all that counts here.                                                *)
(*  - Ranks that are given different generations: they do not understand   *)
(*    each other, and find a record that is malformed or missing.          *)
(*  - What a root that was killed leaves in the directory: its name is     *)
(*    never used again.                                                    *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Ranks,    \* 0..M-1
    HostOf,   \* rank -> its host
    StartAt,  \* the generation of the startup run
    Present   \* the ranks that are there; the others never take a step

Root  == 0
Peers == Ranks \ {Root}
Hosts == {HostOf[r] : r \in Ranks}

ASSUME /\ Present \subseteq Ranks
       /\ Root \in Ranks /\ Ranks = 0..(Cardinality(Ranks) - 1)
       /\ DOMAIN HostOf = Ranks
       /\ StartAt \in Nat

\* The lowest rank of each host represents it, and holds the lock in one round.
Representatives == {r \in Ranks : \A s \in Ranks : HostOf[s] = HostOf[r] => r <= s}
Rounds          == Cardinality(Hosts)
Holder(round)   == CHOOSE r \in Representatives : Cardinality({s \in Representatives : s < r}) = round

-----------------------------------------------------------------------------
(* The phases, in their order, as stages 1, 2, ...                         *)

At(name, round) == [phase |-> name, round |-> round]
Opening == <<At("epoch", 0), At("membership", 0), At("root", 0), At("prepare", 0), At("anchor", 0)>>
Round   == <<"open", "held", "excluded", "released", "reacquired">>
Closing == <<At("identity", 0), At("transcript", 0), At("commit", 0), At("configuration", 0)>>
Litmus  == IF Rounds < 2 THEN <<>>
           ELSE [i \in 1..(5 * Rounds) |-> At(Round[((i - 1) % 5) + 1], (i - 1) \div 5)]
Line    == Opening \o Litmus \o Closing

Epoch         == 1
Membership    == 2
Commit        == Len(Line) - 1
Configuration == Len(Line)

Phase(i)       == Line[i].phase
HolderAt(i)    == Holder(Line[i].round)
\* Rounds that are finished by whoever stands in stage i.
Finished(i)    == Cardinality({j \in 1..(i - 1) : Phase(j) = "reacquired"})

VARIABLES
    pc,         \* rank -> the step it takes next; "wait", "leaving" and "work" are waits
    stage,      \* rank -> the phase it is in; 0 is none
    heard,      \* rank -> what its wait ended with
    sound,      \* rank -> what it has found in this phase is in order
    record,     \* rank -> its record that the root has yet to answer
    reply,      \* rank -> the answer of the root that it has yet to take
    asked,      \* the peers that have yet to read a request to renew
    stops,      \* the ranks that have told all others to stop
    kept,       \* rank -> how many descriptors it holds: the root's, the lock file's, the round's
    locks,      \* the ranks that hold the lock
    leaf,       \* the lock file: "none", "real", or "other" once somebody has replaced it
    outside,    \* a stranger holds the lock
    shared,     \* the file system shares locks between hosts
    given,      \* rank -> the type of the generation it was given
    result,     \* rank -> the kind of its last result
    proof,      \* rank -> the rounds that its last result claims
    stamp,      \* rank -> the generation that its last result bears
    sworn,      \* rank -> one more than the last generation whose transcripts it has said to be equal; 0 is none
    generation, \* rank -> the generation that its controller has committed last
    flight,     \* rank -> the generation that its controller has in flight; 0 is none
    attempts,   \* rank -> the renewals that its controller has counted
    successes,  \* rank -> and those that succeeded
    failures,   \* rank -> and those that failed
    admits,     \* the ranks that may admit
    fatal,      \* rank -> why it must stop: the first reason
    met,        \* rank -> the kind of the last exception that hit its protocol
    code        \* the exit code of the job; 0 while it runs

spots  == <<pc, stage, heard, sound>>
mail   == <<record, reply, asked, stops>>
files  == <<kept, locks, leaf>>
world  == <<outside, shared, given>>
value  == <<result, proof, stamp, sworn>>
book   == <<generation, flight, attempts, successes, failures>>
fate   == <<admits, fatal, code>>
vars   == <<spots, mail, files, world, value, book, fate, met>>

Steps    == {"observe", "act", "enter", "wait", "exchange", "commit", "contain", "fall", "consume", "work",
             "shutdown", "leaving", "abort", "gone", "unwound"}
\* In the protocol, inside a boundary that is total over ordinary exceptions.
Inside   == {"act", "enter", "wait", "exchange", "commit"}
Ended    == {"work", "gone", "unwound"}
Failed   == {"failed", "contained"}
Findings == {"none", "Agreed", "Refused", "Expired"}

\* QUALIFY-0: every variable has its type.
TypeOK == /\ pc \in [Ranks -> Steps] /\ stage \in [Ranks -> 0..Len(Line)]
          /\ heard \in [Ranks -> Findings] /\ sound \in [Ranks -> BOOLEAN]
          /\ record \in [Ranks -> {"none", "good", "bad", "garbled"}]
          /\ reply \in [Peers -> {"none", "good", "bad"}]
          /\ asked \subseteq Peers /\ stops \subseteq Ranks
          /\ kept \in [Ranks -> 0..3] /\ locks \subseteq Ranks
          /\ leaf \in {"none", "real", "other"}
          /\ outside \in BOOLEAN /\ shared \in BOOLEAN
          /\ given \in [Ranks -> {"int", "bool"}]
          /\ result \in [Ranks -> {"none", "verified", "unproven"} \cup Failed]
          /\ proof \in [Ranks -> 0..Rounds] /\ stamp \in [Ranks -> Nat]
          /\ sworn \in [Ranks -> Nat]
          /\ generation \in [Ranks -> Nat] /\ flight \in [Ranks -> Nat]
          /\ attempts \in [Ranks -> Nat] /\ successes \in [Ranks -> Nat] /\ failures \in [Ranks -> Nat]
          /\ admits \subseteq Ranks
          /\ fatal \in [Ranks -> {"none", "proof", "accounting", "configuration", "fleet", "told"}]
          /\ met \in [Ranks -> {"none", "ordinary", "control"}]
          /\ code \in {0, 65, 70}

Init == /\ pc = [r \in Ranks |-> "observe"] /\ stage = [r \in Ranks |-> 0]
        /\ heard = [r \in Ranks |-> "none"] /\ sound = [r \in Ranks |-> TRUE]
        /\ record = [r \in Ranks |-> "none"] /\ reply = [r \in Peers |-> "none"]
        /\ asked = {} /\ stops = {}
        /\ kept = [r \in Ranks |-> 0] /\ locks = {} /\ leaf = "none"
        /\ outside = FALSE /\ shared \in BOOLEAN
        /\ given \in [Ranks -> {"int", "bool"}]
        /\ result = [r \in Ranks |-> "none"] /\ proof = [r \in Ranks |-> 0] /\ stamp = [r \in Ranks |-> 0]
        /\ sworn = [r \in Ranks |-> 0]
        /\ generation = [r \in Ranks |-> StartAt] /\ flight = [r \in Ranks |-> 0]
        /\ attempts = [r \in Ranks |-> 0] /\ successes = [r \in Ranks |-> 0] /\ failures = [r \in Ranks |-> 0]
        /\ admits = {} /\ fatal = [r \in Ranks |-> "none"]
        /\ met = [r \in Ranks |-> "none"] /\ code = 0

-----------------------------------------------------------------------------
(* Parts of steps.                                                         *)

Go(r, step) == pc' = [pc EXCEPT ![r] = step]

Renews(r) == flight[r] # 0
When(r)   == IF Renews(r) THEN "renewal" ELSE "startup"
\* The generation of the run that r is in, as its result bears it.
Bears(r)  == IF Renews(r) THEN flight[r] ELSE IF given[r] = "int" THEN StartAt ELSE 0

\* What the root's wait ends with once these records are there; "none" while it does not end.
Verdict(records) ==
    CASE \E r \in Ranks : records[r] = "garbled" -> "Refused"
      [] \E r \in Ranks : records[r] = "none"    -> "none"
      [] \E r \in Ranks : records[r] = "bad"     -> "Refused"
      [] OTHER                                   -> "Agreed"
Taken(answer) == CASE answer = "good" -> "Agreed" [] answer = "bad" -> "Refused" [] OTHER -> "none"

\* What is in the mail of a rank that will not read it any more is not told.
Deaf(r, place) == \/ place \in {"contain", "fall", "shutdown", "leaving", "abort", "gone", "unwound"}
                  \/ place = "consume" /\ result'[r] # "verified"

\* Records and answers arrive; some waits end.
Deliver(places, ears, records, answers) ==
    LET ends(r) == IF places[r] # "wait" THEN "none" ELSE IF r = Root THEN Verdict(records) ELSE Taken(answers[r])
    IN /\ pc' = [r \in Ranks |-> IF ends(r) # "none" THEN "exchange" ELSE places[r]]
       /\ heard' = [r \in Ranks |-> IF ends(r) # "none" THEN ends(r) ELSE ears[r]]
       /\ reply' = [r \in Peers |-> IF ends(r) # "none" \/ Deaf(r, places[r]) THEN "none" ELSE answers[r]]
       /\ record' = [r \in Ranks |-> IF Deaf(Root, places[Root]) THEN "none" ELSE records[r]]

\* The work of a phase that is a step of its own.
Acts(r, i) == CASE Phase(i) = "held"                     -> r = HolderAt(i)
                [] Phase(i) = "excluded"                 -> r # HolderAt(i)
                [] Phase(i) = "reacquired"               -> r \in Representatives \ {HolderAt(i)}
                [] Phase(i) \in {"released", "identity"} -> TRUE
                [] OTHER                                 -> FALSE
Begins(r, i) == IF Acts(r, i) THEN "act" ELSE "enter"

\* Nothing of a run is left on a rank: no descriptor, no lock, and on the root no lock file.
Close(r) == /\ kept' = [kept EXCEPT ![r] = 0]
            /\ locks' = locks \ {r}
            /\ leaf' = IF r = Root THEN "none" ELSE leaf

Value(r, kind, rounds) == /\ result' = [result EXCEPT ![r] = kind]
                          /\ proof' = [proof EXCEPT ![r] = rounds]
                          /\ stamp' = [stamp EXCEPT ![r] = Bears(r)]

\* The first reason to stop is kept, and whoever has one admits no more.
Doom(r, why) == /\ fatal' = [fatal EXCEPT ![r] = IF @ = "none" THEN why ELSE @]
                /\ admits' = admits \ {r}

\* Somebody else has the lock, as far as the file system tells: on one host it always does.
Occupied(r) == outside \/ \E s \in locks \ {r} : shared \/ HostOf[s] = HostOf[r]

-----------------------------------------------------------------------------
(* System: the protocol on one rank.                                       *)

\* A rank looks at its inputs. At renewal the root asks its peers in the same step.
Observe(r, outcome) ==
    /\ pc[r] = "observe"
    /\ outcome \in {"Observed", "Failed"}
    /\ UNCHANGED result
    /\ sound' = [sound EXCEPT ![r] = (outcome = "Observed")]
    /\ met' = [met EXCEPT ![r] = "none"]
    /\ IF result[r] = "none"
       THEN stage' = [stage EXCEPT ![r] = Epoch] /\ UNCHANGED <<flight, asked>>
       ELSE /\ stage' = [stage EXCEPT ![r] = Membership]
            /\ flight' = [flight EXCEPT ![r] = generation[r] + 1]
            /\ asked' = IF r = Root THEN {p \in Peers : ~Deaf(p, pc[p])} ELSE asked
    /\ Go(r, "enter")
    /\ UNCHANGED <<heard, record, reply, stops, files, world, proof, stamp, sworn, generation, attempts, successes, failures, fate>>

\* The work of the phase, and its record. A lock file that is gone is a failure that the record tells.
Enters(r, fine) ==
    LET i     == stage[r]
        there == CASE Phase(i) = "membership"        -> Renews(r) \/ given[r] = "int"
                   [] Phase(i) \in {"anchor", "open"} -> leaf # "none"
                   [] OTHER                           -> TRUE
        good  == fine /\ there /\ (i = Epoch \/ sound[r])
    IN /\ pc[r] = "enter"
       /\ UNCHANGED <<result, proof, stamp>>
       /\ Deliver([pc EXCEPT ![r] = "wait"], heard, [record EXCEPT ![r] = IF good THEN "good" ELSE "bad"], reply)
       /\ sound' = [sound EXCEPT ![r] = i # Epoch \/ @]
       /\ kept' = [kept EXCEPT ![r] = CASE good /\ Phase(i) = "root"   -> 1
                                        [] good /\ Phase(i) = "anchor" -> 2
                                        [] good /\ Phase(i) = "open"   -> 3
                                        [] OTHER                       -> @]
       /\ leaf' = IF good /\ r = Root /\ Phase(i) = "prepare" THEN "real" ELSE leaf
       /\ sworn' = IF i = Commit /\ good THEN [sworn EXCEPT ![r] = Bears(r) + 1] ELSE sworn
       /\ UNCHANGED <<stage, asked, stops, locks, world, book, fate, met>>

Enter(r) == Enters(r, TRUE)

\* What r's Exchange does to the mail: the root answers everybody, the others have taken its answer.
Answers(r, answer) == IF r = Root THEN [p \in Peers |-> answer] ELSE reply
Records(r)         == IF r = Root THEN [s \in Ranks |-> "none"] ELSE record
Passes(r, step, answer) ==
    Deliver([pc EXCEPT ![r] = step], [heard EXCEPT ![r] = "none"], Records(r), Answers(r, answer))

Moves(r, i)        == stage' = [stage EXCEPT ![r] = i]

\* All records are in order: on to the next phase, or out.
Agree(r) ==
    LET i == stage[r]
    IN IF Phase(i) = "membership" /\ Rounds < 2
       THEN Value(r, "unproven", 0) /\ Passes(r, "consume", "good") /\ Moves(r, 0) /\ UNCHANGED <<admits, files>>
       ELSE /\ UNCHANGED <<result, proof, stamp>>
            /\ IF Phase(i) = "identity" THEN Close(r) ELSE UNCHANGED files
            /\ CASE i = Configuration -> Passes(r, "work", "good") /\ Moves(r, 0) /\ admits' = admits \cup {r}
                 [] i = Commit        -> Passes(r, "commit", "good") /\ UNCHANGED <<stage, admits>>
                 [] OTHER             -> Passes(r, Begins(r, i + 1), "good") /\ Moves(r, i + 1) /\ UNCHANGED admits

\* A record tells a failure, or time is over.
Fail(r) ==
    LET i == stage[r]
    IN /\ IF i = Configuration
          THEN /\ UNCHANGED <<result, proof, stamp, files>>
               /\ Passes(r, "shutdown", "bad") /\ Doom(r, "configuration")
          ELSE /\ Value(r, "failed", Finished(i)) /\ Close(r)
               /\ Passes(r, "consume", "bad") /\ UNCHANGED <<admits, fatal>>
       /\ Moves(r, 0)
       /\ asked' = asked \ {r}

Exchange(r, outcome) ==
    /\ pc[r] = "exchange" /\ heard[r] = outcome
    /\ IF outcome = "Agreed" THEN Agree(r) /\ UNCHANGED <<fatal, asked>> ELSE Fail(r)
    /\ UNCHANGED <<sound, stops, world, sworn, book, code, met>>

\* The five kinds of work that are steps: what is found is told by the record.
Acting(r, phase) == pc[r] = "act" /\ Phase(stage[r]) = phase
Acted(r, fine)   == /\ Go(r, "enter")
                    /\ sound' = [sound EXCEPT ![r] = fine]
                    /\ UNCHANGED <<stage, heard, mail, leaf, world, value, book, fate, met>>

Hold(r, outcome) ==
    /\ Acting(r, "held")
    /\ outcome = IF Occupied(r) THEN "Blocked" ELSE "Acquired"
    /\ locks' = IF outcome = "Acquired" THEN locks \cup {r} ELSE locks
    /\ Acted(r, outcome = "Acquired")
    /\ UNCHANGED kept

Contend(r, outcome) ==
    /\ Acting(r, "excluded")
    /\ outcome = IF Occupied(r) THEN "Blocked" ELSE "Acquired"
    /\ locks' = IF outcome = "Acquired" THEN locks \cup {r} ELSE locks
    /\ Acted(r, outcome = "Blocked")
    /\ UNCHANGED kept

Release(r) ==
    /\ Acting(r, "released")
    /\ kept' = [kept EXCEPT ![r] = 2]
    /\ locks' = locks \ {r}
    /\ Acted(r, TRUE)

Reacquire(r, outcome) ==
    /\ Acting(r, "reacquired")
    /\ outcome = IF leaf = "none" THEN "Gone" ELSE IF Occupied(r) THEN "Blocked" ELSE "Acquired"
    /\ Acted(r, outcome = "Acquired")
    /\ UNCHANGED <<kept, locks>>

CloseIdentity(r, outcome) ==
    /\ Acting(r, "identity")
    /\ outcome = IF leaf = "real" THEN "Same" ELSE "Changed"
    /\ Acted(r, outcome = "Same")
    /\ UNCHANGED <<kept, locks>>

\* All others hold the same transcript and have said so: from here on the proof counts on this rank.
CommitTranscript(r) ==
    /\ pc[r] = "commit"
    /\ Value(r, "verified", Rounds)
    /\ Go(r, "consume") /\ Moves(r, 0)
    /\ UNCHANGED <<heard, sound, mail, files, world, sworn, book, fate, met>>

\* An ordinary exception becomes a failed value that claims nothing; outside a qualification, a reason to stop.
Contain(r) ==
    /\ \/ pc[r] = "contain" /\ Go(r, "consume") /\ Value(r, "contained", 0) /\ UNCHANGED <<admits, fatal>>
       \/ /\ pc[r] = "fall" /\ Go(r, "shutdown")
          /\ Doom(r, IF stage[r] = Configuration THEN "configuration" ELSE "fleet")
          /\ UNCHANGED <<result, proof, stamp>>
    /\ Moves(r, 0)
    /\ UNCHANGED <<heard, sound, mail, files, world, sworn, book, code, met>>

-----------------------------------------------------------------------------
(* System: the consumers on one rank.                                      *)

ConsumeStartup(r, outcome) ==
    /\ outcome = CASE result[r] = "verified" -> "EveryMaster"
                   [] result[r] = "unproven" -> "OneOwner"
                   [] OTHER                  -> "Refused"
    /\ Go(r, CASE outcome = "EveryMaster" -> "enter" [] outcome = "OneOwner" -> "work" [] OTHER -> "abort")
    /\ Moves(r, IF outcome = "EveryMaster" THEN Configuration ELSE 0)
    /\ admits' = IF outcome = "OneOwner" /\ r = Root THEN admits \cup {r} ELSE admits
    /\ UNCHANGED <<book, fatal, asked>>

\* A result is admitted whole or not at all: an exception on the way leaves the controller as it was.
ConsumeRenewal(r, outcome) ==
    /\ outcome = "Accounting" \/ outcome = IF result[r] = "verified" THEN "Success" ELSE "Failure"
    /\ IF outcome = "Accounting"
       THEN UNCHANGED book /\ Doom(r, "accounting")
       ELSE /\ attempts' = [attempts EXCEPT ![r] = @ + 1]
            /\ successes' = [successes EXCEPT ![r] = @ + IF outcome = "Success" THEN 1 ELSE 0]
            /\ failures' = [failures EXCEPT ![r] = @ + IF outcome = "Failure" THEN 1 ELSE 0]
            /\ generation' = [generation EXCEPT ![r] = flight[r]]
            /\ flight' = [flight EXCEPT ![r] = 0]
            /\ IF outcome = "Failure" THEN Doom(r, "proof") ELSE UNCHANGED <<admits, fatal>>
    /\ Go(r, IF outcome = "Success" THEN "work" ELSE "shutdown")
    /\ asked' = IF outcome = "Success" THEN asked ELSE asked \ {r}
    /\ UNCHANGED stage

Consume(r, at, outcome) ==
    /\ pc[r] = "consume" /\ at = When(r)
    /\ IF at = "startup" THEN ConsumeStartup(r, outcome) ELSE ConsumeRenewal(r, outcome)
    /\ UNCHANGED <<heard, sound, record, reply, stops, files, world, value, code, met>>

\* Admission ends, and everybody is told; the wait for the others ends when all have told the same.
Shutdown(r) ==
    /\ pc[r] = "shutdown"
    /\ stops' = stops \cup {r}
    /\ LET places == [pc EXCEPT ![r] = "leaving"]
       IN pc' = [s \in Ranks |-> IF places[s] = "leaving" /\ stops' = Ranks THEN "abort" ELSE places[s]]
    /\ UNCHANGED <<stage, heard, sound, record, reply, asked, files, world, value, book, fate, met>>

\* MPI ends every process.
Abort(r, with) ==
    /\ pc[r] = "abort"
    /\ with = IF fatal[r] = "none" THEN 65 ELSE 70
    /\ code' = with
    /\ pc' = [s \in Ranks |-> IF pc[s] = "unwound" THEN "unwound" ELSE "gone"]
    /\ kept' = [s \in Ranks |-> 0] /\ locks' = {} /\ leaf' = "none"
    /\ admits' = {}
    /\ stage' = [s \in Ranks |-> 0] /\ heard' = [s \in Ranks |-> "none"] /\ sound' = [s \in Ranks |-> TRUE]
    /\ record' = [s \in Ranks |-> "none"] /\ reply' = [s \in Peers |-> "none"]
    /\ asked' = {}
    /\ UNCHANGED <<stops, world, value, book, fatal, met>>

-----------------------------------------------------------------------------
(* Environment: the loop that calls, exceptions, time, messages, files.    *)

\* The loop of a rank that works comes round: somebody has stopped, or a renewal is due or asked for.
Turn(r) ==
    /\ pc[r] = "work"
    /\ IF stops # {}
       THEN Go(r, "shutdown") /\ Doom(r, "told") 
            /\ reply' = [p \in Peers |-> IF p = r THEN "none" ELSE reply[p]]
       ELSE /\ result[r] = "verified" /\ (r = Root \/ r \in asked)
            /\ Go(r, "observe")
            /\ UNCHANGED <<admits, fatal, reply>>
    /\ asked' = asked \ {r}
    /\ UNCHANGED <<stage, heard, sound, record, stops, files, world, value, book, code, met>>

\* An exception in a step, before it has any effect, or in a wait.
Struck(r, kind, place, answers) ==
    /\ met' = [met EXCEPT ![r] = kind]
    /\ sound' = [sound EXCEPT ![r] = TRUE]
    /\ Close(r)
    /\ asked' = asked \ {r}
    /\ UNCHANGED <<stops, world, value, book, fatal, code>>
    /\ Deliver([pc EXCEPT ![r] = place], [heard EXCEPT ![r] = "none"], record, answers)

\* Of the root's answers those to the first ranks have left by then.
RaiseOrdinary(r, sent) ==
    /\ pc[r] \in Inside \cup {"observe", "work"}
    /\ sent \in 0..(Cardinality(Peers) - 1) /\ (sent > 0 => r = Root /\ pc[r] = "exchange")
    /\ LET answer   == IF heard[r] = "Agreed" THEN "good" ELSE "bad"
           qualifies == IF pc[r] = "observe" THEN result[r] = "none" ELSE pc[r] # "work" /\ stage[r] # Configuration
       IN Struck(r, "ordinary", IF qualifies THEN "contain" ELSE "fall",
                 [p \in Peers |-> IF p <= sent THEN answer ELSE reply[p]])
    /\ Moves(r, IF stage[r] = Configuration THEN Configuration ELSE 0)
    /\ UNCHANGED admits

\* Nobody catches it: the rank unwinds, and its process ends.
RaiseControl(r) ==
    /\ pc[r] \notin Ended
    /\ Struck(r, "control", "unwound", reply)
    /\ Moves(r, 0)
    /\ admits' = admits \ {r}

\* The deadline passes for a rank that waits.
Expire(r) ==
    /\ \/ pc[r] = "wait" /\ Go(r, "exchange") /\ heard' = [heard EXCEPT ![r] = "Expired"]
       \/ pc[r] = "leaving" /\ Go(r, "abort") /\ UNCHANGED heard
    /\ UNCHANGED <<stage, sound, mail, files, world, value, book, fate, met>>

\* A message of another run arrives and is drained.
Stray(r) == pc[r] = "wait" /\ UNCHANGED vars

\* A record is damaged on its way.
Garble(r) ==
    /\ r \in Peers /\ record[r] = "good" /\ pc[Root] \in {"act", "enter"}
    /\ UNCHANGED <<stage, sound, asked, stops, files, world, value, book, fate, met>>
    /\ Deliver(pc, heard, [record EXCEPT ![r] = "garbled"], reply)

\* The file system refuses an operation: the record tells it.
FailFile(r) ==
    \/ pc[r] = "enter" /\ Phase(stage[r]) \in {"root", "anchor", "open"} /\ Enters(r, FALSE)
    \/ pc[r] = "enter" /\ Phase(stage[r]) = "prepare" /\ r = Root /\ Enters(r, FALSE)
    \/ pc[r] = "act" /\ Phase(stage[r]) # "released" /\ Acted(r, FALSE) /\ UNCHANGED <<kept, locks>>

\* A stranger takes the lock that nobody holds, before somebody else would.
Intrude ==
    /\ ~outside /\ locks = {} /\ leaf # "none"
    /\ \E r \in Ranks : Acting(r, "held") \/ Acting(r, "reacquired")
    /\ outside' = TRUE
    /\ UNCHANGED <<spots, mail, files, shared, given, value, book, fate, met>>

\* Somebody puts another file in the place of the lock file, when nobody will open it by name any more.
Swap ==
    /\ leaf = "real" /\ \A r \in Ranks : stage[r] # 0 /\ Phase(stage[r]) = "identity"
    /\ \E r \in Ranks : pc[r] = "act"
    /\ leaf' = "other"
    /\ UNCHANGED <<spots, mail, kept, locks, world, value, book, fate, met>>

-----------------------------------------------------------------------------

Outcomes == {"Agreed", "Refused", "Expired"}
Locking  == {"Acquired", "Blocked", "Gone"}
Moments  == {"startup", "renewal"}
Verdicts == {"EveryMaster", "OneOwner", "Refused", "Success", "Failure", "Accounting"}
Codes    == {65, 70}

Protocol(r) ==
    \/ \E o \in {"Observed", "Failed"} : Observe(r, o)
    \/ Enter(r) \/ Release(r) \/ CommitTranscript(r) \/ Contain(r)
    \/ \E o \in Outcomes : Exchange(r, o)
    \/ \E o \in Locking : Hold(r, o) \/ Contend(r, o) \/ Reacquire(r, o)
    \/ \E o \in {"Same", "Changed"} : CloseIdentity(r, o)

Consumer(r) ==
    \/ \E at \in Moments, o \in Verdicts : Consume(r, at, o)
    \/ Shutdown(r)
    \/ \E c \in Codes : Abort(r, c)

Environment ==
    \/ \E r \in Present : Turn(r) \/ RaiseControl(r) \/ Expire(r) \/ Stray(r) \/ Garble(r) \/ FailFile(r)
                        \/ \E n \in 0..Cardinality(Peers) : RaiseOrdinary(r, n)
    \/ Intrude \/ Swap

Next == (\E r \in Present : Protocol(r) \/ Consumer(r)) \/ Environment

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* Fairness, per action.                                                   *)

\* A rank takes its next step; none of these waits for anybody.
FairObserve  == \A r \in Present : WF_vars(\E o \in {"Observed", "Failed"} : Observe(r, o))
FairEnter    == \A r \in Present : WF_vars(Enter(r))
FairExchange == \A r \in Present : WF_vars(\E o \in Outcomes : Exchange(r, o))
FairAct      == \A r \in Present : WF_vars(\/ \E o \in Locking : Hold(r, o) \/ Contend(r, o) \/ Reacquire(r, o)
                                           \/ \E o \in {"Same", "Changed"} : CloseIdentity(r, o)
                                           \/ Release(r))
FairCommit   == \A r \in Present : WF_vars(CommitTranscript(r))
FairContain  == \A r \in Present : WF_vars(Contain(r))
FairConsume  == \A r \in Present : WF_vars(\E at \in Moments, o \in Verdicts : Consume(r, at, o))
\* The service that Shutdown stops stops within its own bounds, or raises.
FairShutdown == \A r \in Present : WF_vars(Shutdown(r))
FairAbort    == \A r \in Present : WF_vars(\E c \in Codes : Abort(r, c))
\* Time passes for everybody who waits. Nothing is said of how often a loop comes round.
FairTime     == \A r \in Present : WF_vars(Expire(r))

Fairness == /\ FairObserve /\ FairEnter /\ FairExchange /\ FairAct /\ FairCommit /\ FairContain /\ FairConsume
            /\ FairShutdown /\ FairAbort /\ FairTime

-----------------------------------------------------------------------------
(* Safety.                                                                 *)

\* Out of the boundary, before its result is made something else.
Out == {"consume", "abort", "shutdown", "leaving", "work"}

\* QUALIFY-1: Totality: only a control exception unwinds a rank; an ordinary one becomes its failed value.
Totality ==
    \A r \in Ranks : /\ pc[r] = "unwound" => met[r] = "control"
                     /\ met[r] = "ordinary" /\ pc[r] \in Out =>
                            result[r] = "contained" \/ fatal[r] \in {"configuration", "fleet"}

\* QUALIFY-2: ControlPasses: a control exception is swallowed nowhere.
ControlPasses == \A r \in Ranks : met[r] = "control" => pc[r] = "unwound"

\* QUALIFY-3: ZeroProof: a contained result claims nothing.
ZeroProof == \A r \in Ranks : result[r] = "contained" => proof[r] = 0

\* QUALIFY-4: GenerationExact: a result bears the generation of its run, and none if what was given is no integer.
GenerationExact ==
    \A r \in Ranks : result[r] # "none" /\ attempts[r] = 0 /\ ~Renews(r) =>
        stamp[r] = IF given[r] = "int" THEN StartAt ELSE 0

\* QUALIFY-5: VerifiedTogether: a proof counts on one rank only if every rank holds the same transcript and said so.
VerifiedTogether ==
    \A r \in Ranks : result[r] = "verified" => \A s \in Ranks : sworn[s] > stamp[r]

\* QUALIFY-6: ProofIsWhole: verified is a proof of all rounds, and only in a file system that shares its locks.
ProofIsWhole ==
    \A r \in Ranks : result[r] = "verified" => proof[r] = Rounds /\ shared /\ Rounds > 1

\* QUALIFY-7: NoWorkAfterFailure: no rank admits after a failure that it has committed, or that ended the job.
NoWorkAfterFailure ==
    \A r \in admits : /\ code = 0 /\ fatal[r] = "none" /\ failures[r] = 0
                      /\ pc[r] \notin {"shutdown", "leaving", "abort", "gone", "unwound"}
                      /\ result[r] \in Failed => pc[r] = "consume" /\ Renews(r)

\* QUALIFY-8: Accounting: every renewal that counts has one outcome.
Accounting == \A r \in Ranks : attempts[r] = successes[r] + failures[r]

\* QUALIFY-9: FailureIsCounted: whoever stops for its failed renewal has counted it, once.
FailureIsCounted == \A r \in Ranks : fatal[r] = "proof" => failures[r] = 1 /\ flight[r] = 0

\* QUALIFY-10: ConsumerIsNotCounted: whoever stops for its accounting has counted nothing, and is still in flight.
ConsumerIsNotCounted ==
    \A r \in Ranks : fatal[r] = "accounting" => failures[r] = 0 /\ flight[r] = generation[r] + 1

\* QUALIFY-11: NothingIsLeft: outside a run a rank has no descriptor and no lock, and the root no lock file.
NothingIsLeft ==
    /\ \A r \in Ranks : pc[r] \notin Inside => kept[r] = 0 /\ r \notin locks
    /\ pc[Root] \notin Inside => leaf = "none"

\* QUALIFY-12: OneHolder: of a lock that is shared there is one holder, and it has the file open.
OneHolder == /\ \A r \in locks : kept[r] = 3 /\ \A s \in locks \ {r} : HostOf[s] # HostOf[r]
             /\ shared => Cardinality(locks) + (IF outside THEN 1 ELSE 0) < 2

\* QUALIFY-13: AbortIsTotal: when the job has an exit code nobody is left, and only for a reason.
AbortIsTotal == code # 0 => /\ \A r \in Ranks : pc[r] \in {"gone", "unwound"}
                            /\ code = 65 => \E r \in Ranks : result[r] \in Failed
                            /\ code = 70 => \E r \in Ranks : fatal[r] # "none"

\* QUALIFY-14: StepByStep: a rank is at most one phase ahead of another one in the same run.
StepByStep ==
    \A r, s \in Ranks : stage[r] # 0 /\ stage[s] # 0 /\ Bears(r) = Bears(s) /\ Renews(r) = Renews(s)
        => stage[r] <= stage[s] + 1

\* QUALIFY-15: a rank that must stop never admits again.
NeverAgain ==
    [][\A r \in Ranks : fatal[r] # "none" \/ pc[r] \in {"abort", "gone", "unwound"} => r \notin admits']_vars

-----------------------------------------------------------------------------
(* Liveness.                                                               *)

\* QUALIFY-16: a rank that has begun ends: it works, it is gone with the job, or it was unwound.
EveryRankEnds == \A r \in Present : (pc[r] \notin Ended) ~> (pc[r] \in Ended)

\* QUALIFY-17: a failure that a rank has committed ends the job.
FailureEndsTheJob == \A r \in Present : (pc[r] = "consume" /\ result[r] \in Failed) ~> (code # 0 \/ pc[r] = "unwound")
=============================================================================
