"""A client for the scheduled events of a VM, as the vendor documents them: GET with the Metadata header, POST of
StartRequests. The client has no knowledge of the fake cloud beside the address of the endpoint.

Usage: client.py ENDPOINT VM
Prints one line for each change and each request, and ends when the event is no longer listed.
"""

import json
import sys
import time
import urllib.request

POLL_SECONDS = 0.25
LIMIT_SECONDS = 60


def request(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url, data=data, headers={"Metadata": "true"})
    # The service is never reached through a proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(asked, timeout=10) as answer:
        return answer.read()


def main(endpoint, vm):
    url = endpoint + "/metadata/scheduledevents?api-version=2020-07-01"
    end = time.monotonic() + LIMIT_SECONDS
    incarnation = None
    seen = {}
    while time.monotonic() < end:
        document = json.loads(request(url))
        if document["DocumentIncarnation"] != incarnation:
            incarnation = document["DocumentIncarnation"]
            events = {event["EventId"]: event for event in document["Events"] if vm in event["Resources"]}
            for event_id, event in events.items():
                if seen.get(event_id) == event["EventStatus"]:
                    continue
                seen[event_id] = event["EventStatus"]
                told = (event["EventStatus"], event["EventType"], event["EventSource"], event["NotBefore"] or "-")
                print(*told, flush=True)
                if event["EventStatus"] == "Scheduled":
                    request(url, {"StartRequests": [{"EventId": event_id}]})
                    print("approved", flush=True)
            if seen and not events:
                print("gone", flush=True)
                return 0
        time.sleep(POLL_SECONDS)
    print("the event did not end within", LIMIT_SECONDS, "seconds", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
