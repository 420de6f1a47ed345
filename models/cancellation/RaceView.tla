------------------------------ MODULE RaceView ------------------------------
(* What Race takes a solver for, stated of Cancellation, request by        *)
(* request. Its liveness is CancelledEnds and EveryRequestEnds there.      *)
EXTENDS MCCancellation

\* Who registers when its race is over is told at once; what a request is told first stays; it settles on that,
\* or on its deadline if it is late; and that is its end.
AsRacesSee ==
    [][\A r \in Requests :
        /\ pc[r] = "register" /\ pc'[r] = "acquire" /\ over /\ r \in Racing => reason'[r] = "lost-race"
        /\ pc[r] \in Unsettled /\ pc'[r] \in Unsettled /\ reason[r] # "none" => reason'[r] = reason[r]
        /\ pc[r] \in Unsettled /\ pc'[r] \notin Unsettled =>
            IF reason[r] # "none" THEN ended'[r] = reason[r]
            ELSE ended'[r] = "none" \/ (ended'[r] = "deadline" /\ r \in late)
        /\ pc[r] \notin Unsettled \cup {"register"} => ended'[r] = ended[r] /\ pc'[r] \notin Unsettled]_vars
=============================================================================
