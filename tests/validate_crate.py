"""What roc-validator requires of an RO-Crate and finds missing, a line each: `python validate_crate.py FOLDER PROFILE`.

In the environment of requirements-crate.lock. No network: for the context of RO-Crate stands one with the terms that a
crate here uses, and that the context can be fetched is the one requirement that is not asked about.
"""

import io
import json
import sys
import urllib.request
import warnings
from email import message_from_string
from urllib.response import addinfourl

CONTEXT = {
    # Of schema.org are all terms but these.
    "@vocab": "http://schema.org/",
    "File": "http://schema.org/MediaObject",
    "ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow",
    "conformsTo": "http://purl.org/dc/terms/conformsTo",
}


class Offline(urllib.request.HTTPSHandler):
    def https_open(self, request):
        if not request.full_url.startswith("https://w3id.org/ro/crate/"):
            raise OSError(f"asked for {request.full_url}")
        headers = message_from_string("Content-Type: application/ld+json\n\n")
        answer = addinfourl(io.BytesIO(json.dumps({"@context": CONTEXT}).encode()), headers, request.full_url, 200)
        answer.msg = "OK"
        return answer


def main(folder: str, profile: str) -> None:
    warnings.simplefilter("ignore")
    urllib.request.install_opener(urllib.request.build_opener(Offline))
    from rocrate_validator import models, services

    required = models.Severity.REQUIRED
    asked = services.ValidationSettings(rocrate_uri=folder, profile_identifier=profile, requirement_severity=required)
    found = [str(issue.message) for issue in services.validate(asked).get_issues()]
    print("\n".join(sorted(message for message in found if "/ro/crate/1.1/context" not in message)))


if __name__ == "__main__":
    main(*sys.argv[1:])
