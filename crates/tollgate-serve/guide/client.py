import json, urllib.error, urllib.request

def acquire(keys, cost=1, url="http://127.0.0.1:7117/acquire"):
    """0 if the request is admitted, else the seconds to wait."""
    body = json.dumps({"keys": keys, "cost": cost}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=1).close()
        return 0
    except urllib.error.HTTPError as error:
        if error.code not in (429, 503):
            raise
        return int(error.headers.get("Retry-After", 1))
