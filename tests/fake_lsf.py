"""Plays LSF's commands on a JSON file: bin/bjobs and the others are this file under their names.

state.json, in the folder that FAKE_LSF names, holds jobs, hosts and how this LSF behaves; calls.jsonl gets every call.
FAKE_USER is who calls; "openlava" is the administrator.
"""

import json
import os
import sys
import textwrap
import time
from pathlib import Path

FOLDER = Path(os.environ["FAKE_LSF"])
USER = os.environ.get("FAKE_USER", "openlava")
ADMIN = USER == "openlava"
QUEUES = {"priority": 43, "short": 35, "normal": 30, "idle": 20}
USAGE = "bjobs: invalid option -- 'j'\nUsage: bjobs [-h] [-V] [-w |-l] [-a] [-d] [-p] [-s] [-r] [-A]"


def fail(text, code=255):
    print(text, file=sys.stderr)
    sys.exit(code)


def clock(job, form):
    return time.strftime(form, time.localtime(job["submit"]))


def in_order(state):
    def rank(job):
        first = job["stat"] in ("PEND", "PSUSP")
        return (first, -QUEUES[job["queue"]], -job.get("aps", 0), -job["priority"], job["place"])

    return sorted((job for job in state["jobs"] if job["stat"] not in ("DONE", "EXIT")), key=rank)


def find(state, identity):
    return next((job for job in state["jobs"] if job["id"] == identity), None)


def wrapped(text):
    """Lines of 79 columns, the further ones behind 21 blanks; a blank that falls on a break is lost."""
    lines, rest = [text[:79]], text[79:]
    while rest:
        rest = rest.removeprefix(" ")
        lines.append(" " * 21 + rest[:58])
        rest = rest[58:]
    return "\n".join(lines)


def bjobs(state, words):
    if "-json" in words and not state["json"]:
        fail(USAGE)
    named = [word for word in words if word[0].isdigit()]
    jobs = in_order(state)
    if named:
        jobs = [job for job in state["jobs"] if job["id"] in named]
        if not jobs:
            fail(f"Job <{named[0]}> is not found")
    if not jobs:
        fail("No unfinished job found", 254)
    if "-json" in words:
        records = [as_json(job) for job in jobs]
        print("Cannot connect to LSF. Please wait ...")
        print(json.dumps({"COMMAND": "bjobs", "JOBS": len(jobs), "RECORDS": records}, indent=2))
    elif "-l" in words:
        print("\n------\n".join(as_paragraph(state, job) for job in jobs))
    else:
        print("JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME")
        for job in jobs:
            number, hosts = job["id"].partition("[")[0], ":".join(job.get("hosts", [])) or "   -  "
            who = f"{number:<7} {job['user']:<7} {job['stat']:<5} {job['queue']:<10}"
            print(f"{who} node1       {hosts:<11} {job['name']:<10} {clock(job, '%b %e %H:%M')}")


def as_json(job):
    number, _, index = job["id"].rstrip("]").partition("[")
    runs = bool(job.get("hosts"))
    return {
        "JOBID": number, "JOBINDEX": index or "0", "STAT": job["stat"], "USER": job["user"], "QUEUE": job["queue"],
        "JOB_NAME": job["name"], "EXEC_HOST": ":".join(job.get("hosts", [])), "NREQ_SLOT": str(job["slots"]),
        "NALLOC_SLOT": str(job["slots"]) if runs else "", "SUBMIT_TIME": clock(job, "%b %e %H:%M"),
        "START_TIME": clock(job, "%b %e %H:%M") if runs else "",
        "RUNTIMELIMIT": f"{job['minutes']:.1f}" if job["minutes"] else "",
        "PEND_REASON": "" if runs else f"{job.get('reason', 'Job slot limit reached')}: 3 hosts;",
        "EFFECTIVE_RESREQ": "select[type == local] order[r15s:pg] ",
    }  # fmt: skip


def as_paragraph(state, job):
    when = clock(job, "%a %b %e %H:%M:%S")
    priority = f", Job Priority <{job['priority']}>" if state["max_priority"] else ""
    slots = f", {job['slots']} Processors Requested" if job["slots"] > 1 else ""
    lines = [
        "",
        wrapped(
            f"Job <{job['id']}>, Job Name <{job['name']}>, User <{job['user']}>, Project <default>, Status "
            f"<{job['stat']}>, Queue <{job['queue']}>{priority}, Command <sleep 20>"
        ),
        wrapped(f"{when}: Submitted from host <node1>, CWD <$HOME>, Output File </dev/null>{slots};"),
    ]
    if job["minutes"]:
        lines += ["", " RUNLIMIT                ", f" {job['minutes']:.1f} min of node1       "]
    if job.get("hosts"):
        hosts = " ".join(f"<{host}>" for host in job["hosts"])
        lines.append(wrapped(f"{when}: Started on {len(job['hosts'])} Hosts/Processors {hosts};"))
    else:
        lines += [" PENDING REASONS:", f" {job.get('reason', 'Job slot limit reached')}: 3 hosts;"]
    return "\n".join(lines) + "\n\n SCHEDULING PARAMETERS:\n           r15s   r1m\n loadSched   -     -  "


def bhosts(state, words):
    rows = []
    for name, host in state["hosts"].items():
        used = sum(job.get("hosts", []).count(name) for job in in_order(state))
        status = host["status"] if host["status"] != "ok" or used < host["max"] else "closed_Full"
        rows.append((name, status, host["max"], used))
    if "-json" in words:
        if not state["json"]:
            fail("bhosts: invalid option -- 'o'\nUsage: bhosts [-h] [-V] [-w | -l] [-R res_req] [host_name ...]")
        keys = ("HOST_NAME", "STATUS", "MAX", "NJOBS")
        records = [dict(zip(keys, map(str, row), strict=True)) for row in rows]
        print(json.dumps({"COMMAND": "bhosts", "HOSTS": len(rows), "RECORDS": records}))
        return
    print("HOST_NAME          STATUS          JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV ")
    for name, status, slots, used in rows:
        print(f"{name:<18} {status:<18} - {slots:>6} {used:>6} {used:>6}      0      0      0")


def lshosts(state, words):
    print("HOST_NAME                       type       model  cpuf ncpus maxmem maxswp server RESOURCES")
    for name in state["hosts"]:
        print(f"{name:<30} linux     IntelI5 100.0     2 24103M      -    Yes (cs)")


def lsload(state, words):
    print("HOST_NAME       status  r15s   r1m  r15m   ut    pg  ls    it   tmp   swp   mem")
    for name in state["hosts"]:
        print(f"{name:<15}     ok   0.0   0.0   0.3   4%   0.0   0 2e+08   64G    0M   23G")


def bparams(state, words):
    print("Default Queues:  normal")
    if state["max_priority"]:
        print(
            textwrap.dedent(f"""
            Maximal user priority:
                MAX_USER_PRIORITY = {state["max_priority"]}""")
        )


def changeable(state, identity, form, started="Job has already started"):
    """The job, if it waits and is the caller's to change."""
    job = find(state, identity)
    if job is None:
        fail(form.format("No matching job found"))
    if not ADMIN and job["user"] != USER:
        fail(form.format("User permission denied"))
    if identity in state.get("ending", []) or job["stat"] in ("DONE", "EXIT"):
        job["stat"] = "DONE"
        fail_with(state, form.format("Job has already finished"))
    if job["stat"] not in ("PEND", "PSUSP"):
        fail(form.format(started))
    return job


def fail_with(state, text):
    write(state)
    fail(text)


def bmod(state, words):
    identity = words[-1]
    if words[0] in ("-aps", "-apsn"):
        if not state["aps"]:
            fail("bmod: invalid option -- 'a'\nUsage: bmod [-h] [-V]")
        if not ADMIN:
            fail("User permission denied. Job not modified.")
        job = changeable(state, identity, "{}. Job not modified.")
        job["aps"] = int(words[1].removeprefix("system=")) if words[0] == "-aps" else 0
    else:
        form = "{}. Job not modified." if find(state, identity) else f"{identity}: {{}}. Job not modified."
        running = "Job parameters cannot be changed now; non-repetitive job is running"
        job = changeable(state, identity, form, running)
        if not state["max_priority"]:
            fail("Job priority control undefined. Job not modified.")
        if not 0 < int(words[1]) <= state["max_priority"]:
            fail("Bad user priority. Job not modified.")
        job["priority"] = int(words[1])
    print(f"Parameters of job <{identity}> are being changed")


def btop(state, words):
    job = changeable(state, words[0], f"{words[0]}: {{}}")
    rivals = [
        other for other in in_order(state)
        if other["stat"] in ("PEND", "PSUSP") and other["queue"] == job["queue"]
        and other["priority"] == job["priority"] and (ADMIN or other["user"] == USER)
    ]  # fmt: skip
    places = [other["place"] for other in rivals]
    moved = [job, *(other for other in rivals if other is not job)]
    for place, other in zip(places, moved, strict=True):
        other["place"] = place
    print(f"Job <{words[0]}> has been moved to position 1 from top.", file=sys.stderr)


def brun(state, words):
    host, identity = words[1], words[2]
    if not ADMIN:
        fail("Failed to run the job: User permission denied")
    job = find(state, identity)
    if host not in state["hosts"]:
        fail("Failed to run the job: Bad host name, host group name or cluster name")
    if job is None:
        fail("Failed to run the job: No matching job found")
    if job["stat"] not in ("DONE", "EXIT", "PEND", "PSUSP"):
        fail("Failed to run the job: Job has already started")
    if not state.get("brun_sleeps"):
        job.update(stat="RUN", hosts=[host] * job["slots"])
    print(f"Job <{identity}> is being forced to run.")


def write(state):
    (FOLDER / "state.json").write_text(json.dumps(state))


def main():
    name, words = Path(sys.argv[0]).name, sys.argv[1:]
    with (FOLDER / "calls.jsonl").open("a") as calls:
        told = {key: os.environ.get(key) for key in ("LSB_NTRIES", "LC_ALL")}
        calls.write(json.dumps([name, words, told]) + "\n")
    state = json.loads((FOLDER / "state.json").read_text())
    if state.get("down"):
        fail(state["down"], 254)
    globals()[name](state, words)
    write(state)


if __name__ == "__main__":
    main()
