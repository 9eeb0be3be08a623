"""Plan transfers from one set of devices to another: proved point-to-point messages, with a lower bound on the time of
any plan.

Its files, the lowest first; each imports those above it in this list alone:

    sides     what each device has before and after, by the ids of devices
    cells     the array cut along the borders of both sides; equal choices joined in demands
    ports     the ports of a machine, and what a transfer keeps busy
    groups    receivers in groups, each with holders of its own
    trees     the ways from a holder to all receivers of a cell
    sent      messages by round, as index arrays
    facts     simple bounds, without a solver
    meeting   when pairs of devices meet: two orders
    direct    plans of one message a pair, for regular problems of any size
    idle      how long ports have nothing to carry
    shares    how many bytes go which way: a linear program
    parts     boxes cut so that a share has its number of bytes
    schedule  the order of transfers at each port, rounds, and the makespan
    bound     the least makespan of any plan: a linear program
    proof     the transfers followed on numbered elements
    waves     what moves together
    written   the plan as JSON
    plan      ``TransferPlan``, the answer
    planner   the candidates, and the choice between these
    tree      many arrays in one plan
    picture   who sends how much to whom
"""
